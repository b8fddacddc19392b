//! How a client keeps its endpoint: tokens in a cookie or a header, made and checked with a secret that all replicas share.
//!
//! A token names its endpoint by a keyed hash, so it shows no address, and is authenticated as a whole, so nobody can make
//! one that leads elsewhere or lasts longer. It is only ever compared with the endpoints that the rule has now: a token
//! cannot bring an address into play. Called by `forward`; knows nothing of connections.

use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};
use gatewright_ir::{Carrier, ClusterId, Session, Text};
use http::{HeaderName, HeaderValue, header::SET_COOKIE};

use crate::matching::{HeaderChanges, RequestView};

/// Clocks of replicas may differ by so many seconds.
const SKEW: u32 = 300;
/// The parts of a token in bytes: the endpoint, when the session began, when it was last used, and what proves these.
const TAG: usize = 8;
const TIMES: usize = 8;
const PROOF: usize = 16;

/// The keyed hash of an endpoint.
pub(crate) type Tag = [u8; TAG];

/// How the clients of a rule keep their endpoints.
pub(crate) struct CompiledSession {
    carrier: Carrier,
    name: Text,
    /// The name as a header, if a header is the carrier.
    header: Option<HeaderName>,
    absolute: Option<Duration>,
    idle: Option<Duration>,
    key: hmac::Key,
}

/// What a request's token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The endpoint.
    pub(crate) tag: Tag,
    /// When the session began, in seconds since 1970.
    pub(crate) created: u32,
}

/// The seconds since 1970.
pub(crate) fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

impl CompiledSession {
    /// Prepares a session; None when its name cannot be that of a cookie or header.
    pub(crate) fn compile(session: &Session) -> Option<Self> {
        let Session {
            carrier,
            name,
            absolute_timeout,
            idle_timeout,
            key,
        } = session;
        // Both kinds of names are tokens.
        let header = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some(Self {
            carrier: *carrier,
            name: name.clone(),
            header: (*carrier == Carrier::Header).then_some(header),
            absolute: *absolute_timeout,
            idle: *idle_timeout,
            key: hmac::Key::new(hmac::HMAC_SHA256, key.expose()),
        })
    }

    /// The hash of an endpoint.
    pub(crate) fn tag(&self, cluster: &ClusterId, address: SocketAddr) -> Tag {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(b"endpoint\0");
        context.update(cluster.as_str().as_bytes());
        context.update(b"\0");
        match address.ip() {
            IpAddr::V4(ip) => context.update(&ip.octets()),
            IpAddr::V6(ip) => context.update(&ip.octets()),
        }
        context.update(&address.port().to_be_bytes());
        first(context.sign().as_ref())
    }

    /// The token of a request, if it has one that is genuine and has not expired.
    pub(crate) fn read(&self, request: &impl RequestView, now: u32) -> Option<Token> {
        if self.carrier == Carrier::Header {
            return request
                .header_values(&self.name)
                .find_map(|value| self.check(value, now));
        }
        let pairs = request
            .header_values("cookie")
            .flat_map(|value| value.split(|byte| *byte == b';'));
        let values = pairs.filter_map(|pair| {
            let (name, value) = pair.split_at_checked(pair.iter().position(|byte| *byte == b'=')?)?;
            (name.trim_ascii() == self.name.as_bytes()).then_some(value.get(1..)?.trim_ascii())
        });
        values.into_iter().find_map(|value| self.check(value, now))
    }

    fn check(&self, text: &[u8], now: u32) -> Option<Token> {
        let bytes: [u8; TAG + TIMES + PROOF] = from_hex(text)?;
        let (stated, proof) = bytes.split_at_checked(TAG + TIMES)?;
        verify_slices_are_equal(&self.proof(stated), proof).ok()?;
        let (tag, times) = stated.split_at_checked(TAG)?;
        let (created, used) = times.split_at_checked(4)?;
        let created = u32::from_be_bytes(created.try_into().ok()?);
        let used = u32::from_be_bytes(used.try_into().ok()?);
        let is_within = |since: u32, limit: Option<Duration>| {
            let age = u64::from(now.saturating_sub(since));
            // Whole seconds: a session may live up to one longer, but never ends early.
            limit.is_none_or(|limit| age <= limit.as_secs()) && since <= now.saturating_add(SKEW)
        };
        (is_within(created, self.absolute) && is_within(used, self.idle)).then_some(Token {
            tag: tag.try_into().ok()?,
            created,
        })
    }

    /// What the response must say so that the client comes back to an endpoint; nothing when it knows that already.
    pub(crate) fn changes(
        &self,
        tag: Tag,
        created: u32,
        now: u32,
        is_new: bool,
        is_secure: bool,
    ) -> Option<HeaderChanges> {
        let is_told = is_new || self.idle.is_some() || self.carrier == Carrier::Header;
        if !is_told {
            return None;
        }
        let mut stated = [0; TAG + TIMES];
        for (place, byte) in stated
            .iter_mut()
            .zip(tag.into_iter().chain(created.to_be_bytes()).chain(now.to_be_bytes()))
        {
            *place = byte;
        }
        let mut value = String::with_capacity(192);
        if self.carrier != Carrier::Header {
            value.push_str(&self.name);
            value.push('=');
        }
        push_hex(&mut value, &stated);
        push_hex(&mut value, &self.proof(&stated));
        if let Some(name) = &self.header {
            return Some(HeaderChanges {
                set: Box::new([(name.clone(), HeaderValue::from_str(&value).ok()?)]),
                ..HeaderChanges::default()
            });
        }
        value.push_str("; Path=/");
        if let Some(limit) = self.absolute.filter(|_| self.carrier == Carrier::PermanentCookie) {
            let left = limit.as_secs().saturating_sub(u64::from(now.saturating_sub(created)));
            value.push_str("; Max-Age=");
            value.push_str(&left.to_string());
        }
        value.push_str("; HttpOnly; SameSite=Lax");
        if is_secure {
            value.push_str("; Secure");
        }
        Some(HeaderChanges {
            add: Box::new([(SET_COOKIE, HeaderValue::from_str(&value).ok()?)]),
            ..HeaderChanges::default()
        })
    }

    fn proof(&self, stated: &[u8]) -> [u8; PROOF] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(b"token\0");
        context.update(self.name.as_bytes());
        context.update(b"\0");
        context.update(stated);
        first(context.sign().as_ref())
    }
}

/// The first bytes of a hash that is longer than that.
fn first<const N: usize>(hash: &[u8]) -> [u8; N] {
    let mut taken = [0; N];
    for (place, byte) in taken.iter_mut().zip(hash) {
        *place = *byte;
    }
    taken
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
}

fn from_hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let digit = |byte: &u8| {
        char::from(*byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let mut bytes = [0; N];
    for (place, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *place = digit(high)? << 4 | digit(low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
