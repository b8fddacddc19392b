//! A route's rules as entries: matches with their rank, filters, and resolved backends.

use std::sync::Arc;

use gatewright_api::Kind;
use gatewright_ir::{Backend, Entry, Origin, Rank, Rule, Target, Text, Timeouts, Unresolved};
use gatewright_world::{
    Key, World,
    object::{HttpRoute, RouteRule},
    origin,
};

use super::backends::{self, BackendUse};
use crate::gateway::Trouble;

/// What the rules of a route come to.
pub(super) struct Made {
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) backends: Vec<BackendUse>,
    /// The first reference that does not hold.
    pub(super) trouble: Option<Trouble>,
}

/// Makes the entries. Those equal to a known one are shared with it, so that planes see what did not change.
pub(super) fn make(world: &World, key: &Key, route: &HttpRoute, known: &[Arc<Entry>]) -> Made {
    let origin = origin::object(Kind::HttpRoute, key);
    let name: Text = key.to_string().into();
    let mut made = Made {
        entries: Vec::new(),
        backends: Vec::new(),
        trouble: None,
    };
    for (index, declared) in route.rules.iter().enumerate() {
        let is_refused = !route.refusals.is_empty() || !declared.refusals.is_empty();
        let rule = if is_refused {
            refused_rule(world, key, &origin, declared, &mut made)
        } else {
            make_rule(world, key, &origin, declared, &mut made)
        };
        let rule = Arc::new(rule);
        for (position, matches) in declared.matches.iter().enumerate() {
            let rank = Rank {
                created: route.meta.created,
                route: name.clone(),
                // The API allows 16 rules and 64 matches; what exceeds u16 cannot have come through validation.
                rule: u16::try_from(index).unwrap_or(u16::MAX),
                position: u16::try_from(position).unwrap_or(u16::MAX),
            };
            let entry = Entry {
                matches: matches.clone(),
                rank,
                rule: rule.clone(),
            };
            let shared = known.get(made.entries.len()).filter(|known| ***known == entry);
            made.entries.push(shared.map_or_else(|| Arc::new(entry), Arc::clone));
        }
    }
    made.backends.sort_by(|left, right| left.cluster.cmp(&right.cluster));
    made.backends.dedup_by(|left, right| left.cluster == right.cluster);
    made
}

/// Nothing of a rule that cannot be honoured is done; its requests are answered with 500. What is wrong with its
/// references is told nevertheless.
fn refused_rule(world: &World, key: &Key, origin: &Origin, declared: &RouteRule, made: &mut Made) -> Rule {
    for backend in &declared.backends {
        if let Err((_, trouble)) = backends::resolve(world, key, backend) {
            made.trouble.get_or_insert(trouble);
        }
    }
    let refused = Backend {
        weight: 1,
        target: Target::Unresolved(Unresolved::Unsupported),
        filters: None,
    };
    Rule {
        origin: origin.clone(),
        name: declared.name.clone(),
        filters: None,
        backends: Box::new([refused]),
        timeouts: Timeouts::default(),
        retry: None,
        session: None,
    }
}

fn make_rule(world: &World, key: &Key, origin: &Origin, declared: &RouteRule, made: &mut Made) -> Rule {
    let RouteRule {
        name,
        matches: _,
        filters,
        backends,
        timeouts,
        refusals: _,
    } = declared;
    let backends = backends.iter().map(|backend| {
        let target = match backends::resolve(world, key, backend) {
            Ok(resolved) => {
                let target = resolved.target();
                made.backends.push(resolved);
                target
            }
            Err((unresolved, trouble)) => {
                made.trouble.get_or_insert(trouble);
                Target::Unresolved(unresolved)
            }
        };
        Backend {
            weight: backend.weight,
            target,
            filters: backend.filters.clone(),
        }
    });
    let backends = backends.collect();
    Rule {
        origin: origin.clone(),
        name: name.clone(),
        filters: filters.clone(),
        backends,
        timeouts: *timeouts,
        retry: None,
        session: None,
    }
}
