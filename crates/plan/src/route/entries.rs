//! A route's rules as entries: matches with their rank, filters, and resolved references.

use std::sync::Arc;

use gatewright_ir::{
    AuthProtocol, Backend, Entry, ExternalAuth, Filters, Mirror, Origin, Rank, Rule, Session, Target, Text, Timeouts,
    Unresolved,
};
use gatewright_world::{
    World,
    object::{AuthRef, BackendRef, Route, RouteFilters, RouteKey, RouteKind, RouteRule, SessionPersistence},
    origin,
};

use super::backends::{BackendUse, Resolver};
use crate::{PlanSettings, cluster::Traffic, gateway::Trouble};

/// What the rules of a route come to.
pub(super) struct Made {
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) backends: Vec<BackendUse>,
    /// The first reference that does not hold.
    pub(super) trouble: Option<Trouble>,
}

/// Makes the entries. Those equal to a known one are shared with it, so that planes see what did not change.
pub(super) fn make(
    world: &World,
    settings: &PlanSettings,
    key: &RouteKey,
    route: &Route,
    known: &[Arc<Entry>],
) -> Made {
    let name: Text = key.key.to_string().into();
    let mut maker = Maker {
        settings,
        origin: origin::object(key.kind.kind(), &key.key),
        traffic: match key.kind {
            RouteKind::Http => Traffic::Http,
            RouteKind::Grpc => Traffic::Grpc,
            RouteKind::Tls | RouteKind::Tcp => Traffic::Stream,
            RouteKind::Udp => Traffic::Datagram,
        },
        references: Resolver {
            world,
            route: key,
            backends: Vec::new(),
            trouble: None,
        },
    };
    // TLSRoutes and TCPRoutes meet on listeners that terminate TLS, and everything meets their matches. Two of one name and
    // age must not have one rank, or one of them would stand in the other's place.
    let offset = u16::from(key.kind == RouteKind::Tcp);
    let mut entries = Vec::new();
    for (index, declared) in route.rules.iter().enumerate() {
        let is_refused = !route.refusals.is_empty() || !declared.refusals.is_empty();
        let rule = Arc::new(if is_refused {
            maker.refused_rule(declared)
        } else {
            maker.rule(declared)
        });
        for (position, matches) in declared.matches.iter().enumerate() {
            let rank = Rank {
                created: route.meta.created,
                route: name.clone(),
                // The API allows 16 rules and 64 matches; what exceeds u16 cannot have come through validation.
                rule: u16::try_from(index).unwrap_or(u16::MAX),
                position: u16::try_from(position).unwrap_or(u16::MAX).saturating_add(offset),
            };
            let entry = Entry {
                matches: matches.clone(),
                rank,
                rule: rule.clone(),
            };
            let shared = known.get(entries.len()).filter(|known| ***known == entry);
            entries.push(shared.map_or_else(|| Arc::new(entry), Arc::clone));
        }
    }
    let Resolver {
        mut backends, trouble, ..
    } = maker.references;
    backends.sort_by(|left, right| left.cluster.cmp(&right.cluster));
    backends.dedup_by(|left, right| left.cluster == right.cluster);
    Made {
        entries,
        backends,
        trouble,
    }
}

struct Maker<'a> {
    settings: &'a PlanSettings,
    origin: Origin,
    /// What the route's own backends get.
    traffic: Traffic,
    references: Resolver<'a>,
}

impl Maker<'_> {
    /// Nothing of a rule that cannot be honoured is done; its requests are answered with 500. What is wrong with its
    /// references is told nevertheless.
    fn refused_rule(&mut self, declared: &RouteRule) -> Rule {
        for backend in &declared.backends {
            self.references.check(&backend.service, self.traffic);
        }
        let refused = Backend {
            weight: 1,
            target: Target::Unresolved(Unresolved::Unsupported),
            filters: None,
        };
        Rule {
            origin: self.origin.clone(),
            name: declared.name.clone(),
            filters: None,
            backends: Box::new([refused]),
            timeouts: Timeouts::default(),
            retry: None,
            session: None,
        }
    }

    fn rule(&mut self, declared: &RouteRule) -> Rule {
        let RouteRule {
            name,
            matches: _,
            filters,
            backends,
            timeouts,
            retry,
            session,
            refusals: _,
        } = declared;
        let backends = backends.iter().map(|backend| {
            let BackendRef {
                service,
                weight,
                filters,
            } = backend;
            Backend {
                weight: *weight,
                target: self.references.target(service, self.traffic),
                filters: filters.as_deref().map(|filters| Box::new(self.filters(filters))),
            }
        });
        let backends = backends.collect();
        Rule {
            origin: self.origin.clone(),
            name: name.clone(),
            filters: filters.as_deref().map(|filters| Box::new(self.filters(filters))),
            backends,
            timeouts: *timeouts,
            retry: retry.as_deref().cloned(),
            session: session.as_deref().map(|session| Box::new(self.session(session))),
        }
    }

    fn filters(&mut self, declared: &RouteFilters) -> Filters {
        let RouteFilters { plain, mirrors, auth } = declared;
        let mirrors = mirrors.iter().map(|mirror| Mirror {
            target: self.references.target(&mirror.service, self.traffic),
            share: mirror.share,
        });
        let mirrors = mirrors.collect();
        Filters {
            mirrors,
            auth: auth.as_ref().map(|auth| Box::new(self.auth(auth))),
            ..plain.clone()
        }
    }

    fn auth(&mut self, declared: &AuthRef) -> ExternalAuth {
        let AuthRef {
            service,
            protocol,
            max_body,
        } = declared;
        let traffic = match protocol {
            AuthProtocol::Grpc { .. } => Traffic::Grpc,
            AuthProtocol::Http { .. } => Traffic::Http,
        };
        ExternalAuth {
            target: self.references.target(service, traffic),
            protocol: protocol.clone(),
            max_body: *max_body,
        }
    }

    fn session(&self, declared: &SessionPersistence) -> Session {
        let SessionPersistence {
            carrier,
            name,
            absolute_timeout,
            idle_timeout,
        } = declared;
        Session {
            carrier: *carrier,
            name: name.clone(),
            absolute_timeout: *absolute_timeout,
            idle_timeout: *idle_timeout,
            key: self.settings.session_key.clone(),
        }
    }
}
