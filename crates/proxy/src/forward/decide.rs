//! Decides what happens to a request: an answer of our own, a redirect, a question to somebody else, or a backend with a
//! prepared request head.
//!
//! Runs from the parsed head to its end without waiting for anything, so that nothing of the head has to be kept while the
//! backend is asked. Only a request about which an authoriser is asked first is kept, and decided upon again.

use std::{cell::RefCell, net::SocketAddr, rc::Rc};

use bytes::Bytes;
use gatewright_ir::ListenerSettings;
use http::{HeaderName, HeaderValue};

use super::{
    Changes, Client, Held, HeldListener, HeldRoute, Reason, RequestFacts, RequestParts,
    authorise::Question,
    mirror::Copied,
    prepare::{Case, Stage},
    replay::Kept,
    seat::Seat,
};
use crate::{
    h1::Encoding,
    matching::{HeaderChanges, RequestView},
    upstream::{Anchor, ClusterView, Endpoint, Registry},
};

/// What happens to a request.
#[derive(Debug)]
pub(crate) enum Decision {
    /// The proxy answers itself.
    Answer(LocalAnswer),
    /// A backend is asked.
    Forward(Forward),
    /// An authoriser is asked first.
    Ask(Box<Question>),
}

/// An answer of our own.
#[derive(Debug)]
pub(crate) struct LocalAnswer {
    /// The listener it counts for.
    pub(crate) listener: Option<Rc<HeldListener>>,
    /// The route it counts for.
    pub(crate) route: Option<Rc<HeldRoute>>,
    /// Which of the rule's backends it stands for, if one was chosen.
    pub(super) place: Option<usize>,
    /// Why, or where to go instead.
    pub(crate) content: Content,
    /// What CORS says on it.
    pub(super) cors: Option<Box<HeaderChanges>>,
    /// Whether it answers a call of gRPC.
    pub(crate) is_grpc: bool,
}

/// What an answer of our own says.
#[derive(Debug)]
pub(crate) enum Content {
    /// Why there is no other.
    Reason(Reason),
    /// Where to go instead.
    Redirect {
        /// The status.
        status: u16,
        /// The new address.
        location: String,
    },
    /// What CORS grants.
    Preflight,
    /// An authoriser's refusal.
    Denied(Box<Denied>),
}

/// What an authoriser says to the client.
#[derive(Debug)]
pub(crate) struct Denied {
    /// The status.
    pub(crate) status: u16,
    /// The headers.
    pub(crate) fields: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub(crate) body: Bytes,
}

/// A request that goes to a backend.
#[derive(Debug)]
pub(crate) struct Forward {
    /// The listener.
    pub(crate) listener: Rc<HeldListener>,
    /// The rule.
    pub(crate) route: Rc<HeldRoute>,
    /// The endpoints.
    pub(crate) cluster: Rc<ClusterView>,
    /// The client, where the cluster keeps clients at their endpoints.
    pub(super) anchor: Option<Anchor>,
    /// Which of the rule's backends.
    pub(super) place: usize,
    /// What the exchange must know about the request.
    pub(crate) facts: RequestFacts,
    /// The head for the backend.
    pub(crate) prepared: Prepared,
    /// What CORS says on the response.
    pub(super) cors: Option<Box<HeaderChanges>>,
    /// What most requests have none of.
    pub(super) extras: RefCell<Option<Box<Extras>>>,
}

/// What some rules do beside forwarding.
#[derive(Debug, Default)]
pub(super) struct Extras {
    /// The copies for mirrors.
    pub(super) mirrors: Vec<Copied>,
    /// The client's session.
    pub(super) seat: Option<Seat>,
    /// The part of the body that was read already.
    pub(super) body: Option<Kept>,
}

impl Extras {
    pub(super) fn is_empty(&self) -> bool {
        self.mirrors.is_empty() && self.seat.is_none() && self.body.is_none()
    }
}

/// A request head in the form that the backend speaks.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// The bytes of the head were written; the body is delimited so.
    H1(Encoding),
    /// A request for a new stream.
    H2(Box<http::Request<()>>),
}

impl Content {
    /// The status.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Reason(reason) => reason.status(),
            Self::Redirect { status, .. } => *status,
            Self::Preflight => 204,
            Self::Denied(denied) => denied.status,
        }
    }

    /// The reason, if it is one.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            Self::Reason(reason) => Some(*reason),
            Self::Redirect { .. } | Self::Preflight => None,
            Self::Denied(_) => Some(Reason::AuthDenied),
        }
    }
}

impl LocalAnswer {
    /// An answer before any route is known.
    pub(crate) fn early(reason: Reason, listener: Option<&Rc<HeldListener>>, is_grpc: bool) -> Self {
        Self {
            listener: listener.cloned(),
            route: None,
            place: None,
            content: Content::Reason(reason),
            cors: None,
            is_grpc,
        }
    }

    /// The changes that its rule makes to responses. Refusals and failures are ours alone, but pages may read them.
    pub(crate) fn changes(&self) -> Changes<'_> {
        let is_redirect = matches!(self.content, Content::Redirect { .. });
        let rule = self.route.as_ref().filter(|_| is_redirect).map(|route| &route.rule);
        let backend = rule.zip(self.place).and_then(|(rule, place)| rule.backend(place));
        Changes {
            rule: rule.and_then(|rule| rule.filters.as_deref()),
            backend: backend.and_then(|backend| backend.filters.as_deref()),
            cors: self.cors.as_deref(),
            ..Changes::default()
        }
    }
}

impl Forward {
    /// The endpoint that gets the request, if another than the one to avoid can be had.
    pub(super) fn choose(&self, registry: &Registry, avoid: Option<SocketAddr>) -> Option<Rc<Endpoint>> {
        match self.anchor {
            Some(client) => self.cluster.choose_for(client, registry, avoid),
            None => self.cluster.choose(registry, avoid),
        }
    }

    /// The changes that the rule and the backend make.
    pub(crate) fn changes(&self) -> Changes<'_> {
        let rule = &self.route.rule;
        Changes {
            rule: rule.filters.as_deref(),
            backend: rule.backend(self.place).and_then(|backend| backend.filters.as_deref()),
            cors: self.cors.as_deref(),
            ..Changes::default()
        }
    }

    /// The settings of the listener.
    pub(crate) fn settings(&self) -> &ListenerSettings {
        &self.listener.listener.settings
    }

    /// An answer of our own in place of the backend's.
    pub(crate) fn into_answer(self, reason: Reason) -> LocalAnswer {
        LocalAnswer {
            listener: Some(self.listener),
            route: Some(self.route),
            place: Some(self.place),
            content: Content::Reason(reason),
            cors: self.cors,
            is_grpc: self.facts.is_grpc,
        }
    }
}

/// Decides what happens to a request. An HTTP/1.1 head for the backend is written to `head`.
pub(crate) fn decide(
    routing: &Rc<Held>,
    client: &Client,
    peer: &str,
    request: &RequestParts<'_, '_>,
    head: &mut Vec<u8>,
) -> Decision {
    let worker = &client.worker;
    let is_grpc = request.facts.is_grpc;
    let early = |reason, listener| Decision::Answer(LocalAnswer::early(reason, listener, is_grpc));
    let Some((listener, routes)) = routing.listener(request.host(), worker) else {
        // A name that no listener has cannot be the one that the handshake was made for.
        let reason = if client.secured.is_some() {
            Reason::Misdirected
        } else {
            Reason::NoRoute
        };
        return early(reason, routing.first_listener(worker));
    };
    if client
        .secured
        .as_ref()
        .is_some_and(|secured| !secured.reaches(&listener.listener))
    {
        return early(Reason::Misdirected, Some(listener));
    }
    let Some(entry) = routes.find(request) else {
        return early(Reason::NoRoute, Some(listener));
    };
    let route = listener.route(&entry.rule);
    let case = Case {
        routing,
        client,
        peer,
        listener,
        route: &route,
        entry,
        request,
    };
    case.decide(Stage::default(), head)
}
