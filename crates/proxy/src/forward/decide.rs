//! Decides what happens to a request: an answer of our own, a redirect, or a backend with a prepared request head.
//!
//! Runs from the parsed head to its end without waiting for anything, so that nothing of the head has to be kept while the
//! backend is asked.

use std::rc::Rc;

use gatewright_ir::{HttpSettings, UpstreamProtocol};

use super::{Changes, Client, Held, HeldListener, HeldRoute, Reason, RequestFacts, RequestParts, Sender};
use crate::{
    h1::{self, Encoding},
    h2,
    matching::{CompiledEntry, RequestView},
    redirect::{self, Redirected},
    upstream::ClusterView,
};

/// What happens to a request.
#[derive(Debug)]
pub(crate) enum Decision {
    /// The proxy answers itself.
    Answer(LocalAnswer),
    /// A backend is asked.
    Forward(Forward),
}

/// An answer of our own.
#[derive(Debug)]
pub(crate) struct LocalAnswer {
    /// The listener it counts for.
    pub(crate) listener: Option<Rc<HeldListener>>,
    /// The route it counts for.
    pub(crate) route: Option<Rc<HeldRoute>>,
    /// Why, or where to go instead.
    pub(crate) content: Content,
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
    /// Which of the rule's backends.
    choice: u64,
    /// What the exchange must know about the request.
    pub(crate) facts: RequestFacts,
    /// The head for the backend.
    pub(crate) prepared: Prepared,
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
        }
    }

    /// The reason, if it is one.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            Self::Reason(reason) => Some(*reason),
            Self::Redirect { .. } => None,
        }
    }
}

impl LocalAnswer {
    /// An answer before any route is known.
    pub(crate) fn early(reason: Reason, listener: Option<&Rc<HeldListener>>) -> Self {
        Self {
            listener: listener.cloned(),
            route: None,
            content: Content::Reason(reason),
        }
    }

    /// The changes that its rule makes to responses.
    pub(crate) fn changes(&self) -> Changes<'_> {
        let is_redirect = matches!(self.content, Content::Redirect { .. });
        let rule = self.route.as_ref().filter(|_| is_redirect);
        Changes {
            rule: rule.and_then(|route| route.rule.filters.as_deref()),
            backend: None,
        }
    }
}

impl Forward {
    /// The changes that the rule and the backend make.
    pub(crate) fn changes(&self) -> Changes<'_> {
        Changes {
            rule: self.route.rule.filters.as_deref(),
            backend: self
                .route
                .backend(self.choice)
                .and_then(|backend| backend.filters.as_deref()),
        }
    }

    /// The settings of the listener.
    pub(crate) fn settings(&self) -> &HttpSettings {
        &self.listener.listener.settings
    }
}

/// Decides what happens to a request. An HTTP/1.1 head for the backend is written to `head`.
pub(crate) fn decide(
    routing: &Held,
    client: &Client,
    peer: &str,
    request: &RequestParts<'_, '_>,
    head: &mut Vec<u8>,
) -> Decision {
    let worker = &client.worker;
    let Some((listener, routes)) = routing.listener(request.host(), worker) else {
        // A name that no listener has cannot be the one that the handshake was made for.
        let reason = if client.secured.is_some() {
            Reason::Misdirected
        } else {
            Reason::NoRoute
        };
        return Decision::Answer(LocalAnswer::early(reason, routing.first_listener(worker)));
    };
    if client
        .secured
        .as_ref()
        .is_some_and(|secured| secured.listener != listener.listener.origin)
    {
        return Decision::Answer(LocalAnswer::early(Reason::Misdirected, Some(listener)));
    }
    let Some(entry) = routes.find(request) else {
        return Decision::Answer(LocalAnswer::early(Reason::NoRoute, Some(listener)));
    };
    let route = listener.route(&entry.rule);
    let settings = &listener.listener.settings;
    let sender = Sender {
        peer,
        is_trusted: client.is_trusted(settings),
        allows_underscores: settings.allow_underscores,
    };
    let content = match prepare(routing, listener, &route, entry, sender, request, client, head) {
        Ok((prepared, choice, cluster)) => {
            return Decision::Forward(Forward {
                listener: Rc::clone(listener),
                route,
                cluster,
                choice,
                facts: request.facts,
                prepared,
            });
        }
        Err(content) => content,
    };
    Decision::Answer(LocalAnswer {
        listener: Some(Rc::clone(listener)),
        route: Some(route),
        content,
    })
}

#[expect(
    clippy::too_many_arguments,
    reason = "the second half of one function, cut where its result changes"
)]
fn prepare(
    routing: &Held,
    listener: &HeldListener,
    route: &HeldRoute,
    entry: &CompiledEntry,
    sender: Sender<'_>,
    request: &RequestParts<'_, '_>,
    client: &Client,
    head: &mut Vec<u8>,
) -> Result<(Prepared, u64, Rc<ClusterView>), Content> {
    let filters = route.rule.filters.as_deref();
    if let Some(redirect) = filters.and_then(|filters| filters.redirect.as_deref()) {
        return Err(redirection(redirect, listener, entry, request));
    }
    let choice = route.next_choice();
    let backend = route.backend(choice).ok_or(Content::Reason(Reason::NoBackend))?;
    let changes = Changes {
        rule: filters,
        backend: backend.filters.as_deref(),
    };
    if let Some(redirect) = changes.backend.and_then(|filters| filters.redirect.as_deref()) {
        return Err(redirection(redirect, listener, entry, request));
    }
    let cluster = route
        .cluster(backend, &routing.table, &client.worker)
        .map_err(Content::Reason)?;
    let asked = Asked::new(request, entry, changes);
    let prepared = match cluster.protocol {
        UpstreamProtocol::Http1 => h1::write_request(head, request, &asked, sender, changes).map(Prepared::H1),
        UpstreamProtocol::H2c => {
            h2::request(request, &asked, sender, changes).map(|request| Prepared::H2(request.into()))
        }
    };
    let prepared = prepared.ok_or(Content::Reason(Reason::ForbiddenHeader))?;
    Ok((prepared, choice, cluster))
}

fn redirection(
    redirect: &gatewright_ir::Redirect,
    listener: &HeldListener,
    entry: &CompiledEntry,
    request: &RequestParts<'_, '_>,
) -> Content {
    let kept = Redirected {
        scheme: request.scheme,
        host: request.host(),
        listener_port: listener.listener.port,
        path: request.path(),
        query: request.query(),
        matched_prefix: entry.prefix(),
    };
    Content::Redirect {
        status: redirect::status(redirect).as_u16(),
        location: redirect::location(redirect, kept),
    }
}

/// What the backend is asked for, after rewrites.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// The path, when it is rewritten.
    rewritten: Option<String>,
    /// The authority.
    pub(crate) authority: &'a [u8],
    path: &'a str,
    /// The query.
    pub(crate) query: Option<&'a str>,
}

impl<'a> Asked<'a> {
    fn new(request: &'a RequestParts<'_, '_>, entry: &CompiledEntry, changes: Changes<'a>) -> Self {
        let mut asked = Self {
            rewritten: None,
            authority: request.authority_text().as_bytes(),
            path: request.path(),
            query: request.query(),
        };
        let rewrites = [changes.rule, changes.backend].into_iter().flatten();
        for rewrite in rewrites.filter_map(|filters| filters.rewrite.as_deref()) {
            if let Some(hostname) = &rewrite.hostname {
                asked.authority = hostname.as_bytes();
            }
            if let Some(path) = &rewrite.path {
                asked.rewritten = Some(path.apply(request.path(), entry.prefix()));
            }
        }
        asked
    }

    /// The path.
    pub(crate) fn path(&self) -> &str {
        self.rewritten.as_deref().unwrap_or(self.path)
    }
}
