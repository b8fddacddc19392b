//! What a rule makes of a request: its filters in their order, the choice of a backend, and the head for that backend.
//!
//! Called by `decide` once the rule is known, and again by `authorise` after an authoriser has agreed.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use gatewright_ir::{Target, UpstreamProtocol};

use super::{
    Changes, Client, Content, Decision, Forward, Held, HeldListener, HeldRoute, LocalAnswer, Prepared, Reason,
    RequestFacts, RequestParts, Sender, authorise::Question, decide::Extras, mirror::Copied, replay::Kept,
    request::KeptHead, seat::Seat,
};
use crate::{
    h1, h2,
    matching::{CompiledAuth, CompiledEntry, CompiledFilters, HeaderChanges, RequestView, Verdict},
    redirect::{self, Redirected},
    session,
    upstream::{Anchor, ClusterView},
};

/// A request and the rule that it belongs to.
#[derive(Clone, Copy)]
pub(super) struct Case<'a, 'h, 'b> {
    pub(super) routing: &'a Rc<Held>,
    pub(super) client: &'a Client,
    pub(super) peer: &'a str,
    pub(super) listener: &'a Rc<HeldListener>,
    pub(super) route: &'a Rc<HeldRoute>,
    pub(super) entry: &'a Arc<CompiledEntry>,
    pub(super) request: &'a RequestParts<'h, 'b>,
}

/// How far a request has come; more than nothing only after an authoriser was asked.
#[derive(Debug, Default)]
pub(super) struct Stage {
    /// Whether the rule's authoriser has agreed.
    pub(super) rule_agrees: bool,
    /// Whether the backend's authoriser has agreed.
    pub(super) backend_agrees: bool,
    /// What they put on the request.
    pub(super) granted: Option<Box<HeaderChanges>>,
    /// What they put on the response.
    pub(super) response: Option<Box<HeaderChanges>>,
    /// The backend that was chosen, and the session that led there.
    pub(super) chosen: Option<(usize, Option<Seat>)>,
    /// The part of the body that was read already.
    pub(super) body: Option<Kept>,
}

/// Who has to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The rule's authoriser.
    Rule,
    /// The authoriser of the backend that was chosen.
    Backend,
}

/// Why a request does not go to a backend now.
enum Stop {
    Answer(Content),
    Ask(Asked),
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Self {
        Self::Answer(Content::Reason(reason))
    }
}

/// What was settled on the way.
#[derive(Default)]
struct Settled {
    cors: Option<Box<HeaderChanges>>,
    place: Option<usize>,
    seat: Option<Seat>,
}

impl Case<'_, '_, '_> {
    /// Decides what happens to the request.
    pub(super) fn decide(self, mut stage: Stage, head: &mut Vec<u8>) -> Decision {
        let mut settled = Settled::default();
        let outcome = self.prepare(&stage, &mut settled, head);
        if let Some(response) = stage.response.as_deref() {
            settled.cors = Some(Box::new(HeaderChanges::join(settled.cors.take(), response.clone())));
        }
        match outcome {
            Ok((prepared, cluster, mirrors)) => {
                let extras = Extras {
                    mirrors,
                    seat: settled.seat,
                    body: stage.body.take(),
                };
                Decision::Forward(Forward {
                    listener: Rc::clone(self.listener),
                    route: Rc::clone(self.route),
                    anchor: self.anchor(&cluster),
                    cluster,
                    place: settled.place.unwrap_or_default(),
                    facts: self.request.facts,
                    prepared,
                    cors: settled.cors,
                    extras: RefCell::new((!extras.is_empty()).then(|| Box::new(extras))),
                })
            }
            Err(Stop::Answer(content)) => Decision::Answer(LocalAnswer {
                listener: Some(Rc::clone(self.listener)),
                route: Some(Rc::clone(self.route)),
                place: settled.place,
                content,
                cors: settled.cors,
                is_grpc: self.request.facts.is_grpc,
            }),
            Err(Stop::Ask(asked)) => {
                stage.chosen = settled.place.map(|place| (place, settled.seat));
                Decision::Ask(Box::new(Question {
                    routing: Rc::clone(self.routing),
                    listener: Rc::clone(self.listener),
                    route: Rc::clone(self.route),
                    entry: Arc::clone(self.entry),
                    head: KeptHead::new(self.request),
                    asked,
                    stage,
                    cors: settled.cors,
                }))
            }
        }
    }

    fn prepare(
        self,
        stage: &Stage,
        settled: &mut Settled,
        head: &mut Vec<u8>,
    ) -> Result<(Prepared, Rc<ClusterView>, Vec<Copied>), Stop> {
        let Self { route, request, .. } = self;
        let filters = route.rule.filters.as_deref();
        if let Some(filters) = filters {
            self.pass(filters, Asked::Rule, stage.rule_agrees, settled)?;
        }
        let place = self.choose(stage, settled);
        let backend = route.rule.backend(place).ok_or(Reason::NoBackend)?;
        settled.place = Some(place);
        if let Some(filters) = backend.filters.as_deref() {
            self.pass(filters, Asked::Backend, stage.backend_agrees, settled)?;
        }
        let changes = Changes {
            rule: filters,
            backend: backend.filters.as_deref(),
            granted: stage.granted.as_deref(),
            ..Changes::default()
        };
        let cluster = self.cluster(&backend.target)?;
        let wanted = Wanted::new(request, self.entry, changes);
        let prepared = self.write(&cluster, &wanted, changes, request.facts, head)?;
        let has_mirrors =
            |filters: Option<&CompiledFilters>| filters.is_some_and(|filters| !filters.mirrors.is_empty());
        let mirrors = if has_mirrors(changes.rule) || has_mirrors(changes.backend) {
            self.copies(&wanted, changes)
        } else {
            Vec::new()
        };
        Ok((prepared, cluster, mirrors))
    }

    /// Filters that may end a request here.
    fn pass(self, filters: &CompiledFilters, asked: Asked, agrees: bool, settled: &mut Settled) -> Result<(), Stop> {
        if let Some(cors) = &filters.cors
            && settled.cors.is_none()
        {
            match cors.judge(self.request) {
                Verdict::Pass(changes) => settled.cors = changes,
                Verdict::Preflight(changes) => {
                    settled.cors = Some(changes);
                    return Err(Stop::Answer(Content::Preflight));
                }
            }
        }
        if filters.auth.is_some() && !agrees {
            return Err(Stop::Ask(asked));
        }
        if let Some(redirect) = filters.redirect.as_deref() {
            return Err(Stop::Answer(self.redirection(redirect)));
        }
        Ok(())
    }

    /// The place of the backend: where the client's session is, or else the next by weight.
    fn choose(self, stage: &Stage, settled: &mut Settled) -> usize {
        if let Some((place, seat)) = stage.chosen {
            settled.seat = seat;
            return place;
        }
        let Some(session) = self.route.rule.session.as_deref() else {
            return self.route.next_place();
        };
        let now = session::now();
        let mut seat = Seat::new(now, self.request.scheme);
        let found = session.read(self.request, now).and_then(|token| {
            self.route.rule.weighted().find_map(|(place, backend)| {
                let Target::Cluster(id) = &backend.target else {
                    return None;
                };
                let cluster = self.cluster(&backend.target).ok()?;
                let address = cluster.tagged(&self.client.worker.endpoints, session, id, token.tag)?;
                Some((place, address, token.created))
            })
        });
        let place = match found {
            Some((place, address, created)) => {
                seat.found(address, created);
                place
            }
            None => self.route.next_place(),
        };
        settled.seat = Some(seat);
        place
    }

    fn cluster(self, target: &Target) -> Result<Rc<ClusterView>, Reason> {
        self.route.cluster(target, &self.routing.table, &self.client.worker)
    }

    /// Writes the head in the form that a cluster speaks.
    fn write(
        self,
        cluster: &ClusterView,
        wanted: &Wanted<'_>,
        changes: Changes<'_>,
        facts: RequestFacts,
        head: &mut Vec<u8>,
    ) -> Result<Prepared, Reason> {
        let settings = &self.listener.listener.settings;
        let sender = Sender {
            peer: self.peer,
            is_trusted: self.client.is_trusted(settings),
            allows_underscores: settings.allow_underscores,
        };
        let prepared = match cluster.protocol {
            UpstreamProtocol::Http1 => {
                h1::write_request(head, self.request, wanted, facts, sender, changes).map(Prepared::H1)
            }
            UpstreamProtocol::Http2 => {
                h2::request(self.request, wanted, facts, sender, changes).map(|request| Prepared::H2(request.into()))
            }
            // Rules for requests never name these.
            UpstreamProtocol::Tcp | UpstreamProtocol::Udp => return Err(Reason::NoEndpoints),
        };
        prepared.ok_or(Reason::ForbiddenHeader)
    }

    /// The copies of this request that are due. A mirror that cannot be reached gets none, and nobody notices.
    fn copies(self, wanted: &Wanted<'_>, changes: Changes<'_>) -> Vec<Copied> {
        let facts = RequestFacts {
            expects_continue: false,
            ..self.request.facts
        };
        if facts.wants_upgrade {
            return Vec::new();
        }
        let filters = [changes.rule, changes.backend].into_iter().flatten();
        let mirrors = filters.flat_map(|filters| &filters.mirrors);
        let mut copies = Vec::new();
        for mirror in mirrors.filter(|mirror| self.route.is_due(mirror)) {
            let Ok(cluster) = self.cluster(&mirror.target) else {
                continue;
            };
            let mut head = Vec::new();
            if let Ok(prepared) = self.write(&cluster, wanted, changes, facts, &mut head) {
                let forward = self.aside(cluster, facts, prepared);
                copies.push(Copied { forward, head });
            }
        }
        copies
    }

    /// A request beside the client's own.
    fn aside(self, cluster: Rc<ClusterView>, facts: RequestFacts, prepared: Prepared) -> Forward {
        Forward {
            listener: Rc::clone(self.listener),
            route: Rc::clone(self.route),
            anchor: self.anchor(&cluster),
            cluster,
            place: usize::MAX,
            facts,
            prepared,
            cors: None,
            extras: RefCell::default(),
        }
    }

    fn anchor(self, cluster: &ClusterView) -> Option<Anchor> {
        cluster.is_by_client.then(|| Anchor::of(self.client.peer.ip()))
    }

    fn redirection(self, redirect: &gatewright_ir::Redirect) -> Content {
        let request = self.request;
        let kept = Redirected {
            scheme: request.scheme,
            host: request.host(),
            listener_port: self.listener.listener.port,
            path: request.path(),
            query: request.query(),
            matched_prefix: self.entry.prefix(),
        };
        Content::Redirect {
            status: redirect::status(redirect).as_u16(),
            location: redirect::location(redirect, kept),
        }
    }
}

/// The authoriser that is asked.
pub(super) fn authoriser<'a>(route: &'a HeldRoute, asked: Asked, stage: &Stage) -> Option<&'a CompiledAuth> {
    let filters = match asked {
        Asked::Rule => route.rule.filters.as_deref(),
        Asked::Backend => {
            let (place, _) = stage.chosen.as_ref()?;
            route.rule.backend(*place)?.filters.as_deref()
        }
    };
    filters?.auth.as_deref()
}

/// What the backend is asked for, after rewrites.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    /// The path, when it is rewritten.
    rewritten: Option<String>,
    /// The authority.
    pub(crate) authority: &'a [u8],
    path: &'a str,
    /// The query.
    pub(crate) query: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    fn new(request: &'a RequestParts<'_, '_>, entry: &CompiledEntry, changes: Changes<'a>) -> Self {
        let mut wanted = Self {
            rewritten: None,
            authority: request.authority_text().as_bytes(),
            path: request.path(),
            query: request.query(),
        };
        let rewrites = [changes.rule, changes.backend].into_iter().flatten();
        for rewrite in rewrites.filter_map(|filters| filters.rewrite.as_deref()) {
            if let Some(hostname) = &rewrite.hostname {
                wanted.authority = hostname.as_bytes();
            }
            if let Some(path) = &rewrite.path {
                wanted.rewritten = Some(path.apply(request.path(), entry.prefix()));
            }
        }
        wanted
    }

    /// The path.
    pub(crate) fn path(&self) -> &str {
        self.rewritten.as_deref().unwrap_or(self.path)
    }
}
