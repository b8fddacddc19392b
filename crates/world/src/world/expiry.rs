//! Which certificates are valid now.
//!
//! Plans have no clock: whoever has one tells the world the time, and asks when it should be told again. A certificate that
//! begins or ceases to be valid is a change of its Secret.

use std::collections::BTreeSet;

use ahash::AHashMap;

use super::World;
use crate::{Key, object::Secret, resolve::Granted};

/// The time, and when it changes something.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// Seconds since 1970; none until someone has said it, and then everything counts as valid.
    now: Option<i64>,
    /// When something changes, with what.
    boundaries: BTreeSet<(i64, Key)>,
    validity: AHashMap<Key, (i64, i64)>,
}

/// Whether a certificate is valid now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// It is.
    Valid,
    /// Not yet; from this time on, in seconds since 1970.
    NotBefore(i64),
    /// No longer; until this time.
    NotAfter(i64),
}

impl Clock {
    /// Takes over when a Secret's certificate is valid; none if it has none.
    pub(super) fn follow(&mut self, key: &Key, validity: Option<(i64, i64)>) {
        let old = match validity {
            Some(validity) => self.validity.insert(key.clone(), validity),
            None => self.validity.remove(key),
        };
        if let Some((begin, end)) = old {
            self.boundaries.remove(&(begin, key.clone()));
            self.boundaries.remove(&(end.saturating_add(1), key.clone()));
        }
        if let Some((begin, end)) = validity {
            self.boundaries.insert((begin, key.clone()));
            self.boundaries.insert((end.saturating_add(1), key.clone()));
        }
    }
}

impl World {
    /// Says what time it is, in seconds since 1970. Gives the time at which something will be different.
    pub fn set_time(&mut self, now: i64) -> Option<i64> {
        let clock = &mut self.clock;
        let before = clock.now.replace(now);
        // The clock of a machine may also go back.
        let (from, to) = match before {
            None => (i64::MIN, i64::MAX),
            Some(before) => (before.min(now), before.max(now)),
        };
        let after = |time: i64| (time.saturating_add(1), Key::new("", ""));
        if from < to {
            for (_, key) in clock.boundaries.range(after(from)..after(to)) {
                self.changes.secrets.insert(key.clone());
            }
        }
        let mut later = clock.boundaries.range(after(now)..);
        later.next().map(|(at, _)| *at)
    }

    /// Whether the certificate of a Secret is valid now.
    pub fn validity(&self, secret: &Granted<Secret>) -> Validity {
        let Some(now) = self.clock.now else {
            return Validity::Valid;
        };
        match self.clock.validity.get(secret.key()) {
            Some((begin, _)) if now < *begin => Validity::NotBefore(*begin),
            Some((_, end)) if now > *end => Validity::NotAfter(*end),
            _ => Validity::Valid,
        }
    }
}

#[cfg(test)]
mod tests;
