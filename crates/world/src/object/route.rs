//! A route of any kind, reduced: matches and filters in IR form, references not yet resolved.
//!
//! All kinds come to the same form, each in a file of its own, so that planning does not care which of them it reads.

use std::time::Duration;

use gatewright_api::{GATEWAY_GROUP, Kind, Object};
use gatewright_ir::{AuthProtocol, Carrier, Filters, HostPattern, Match, Retry, Share, Text, Timeouts};

use super::{Meta, Refusal};
use crate::{Interner, Key};

/// The kinds of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RouteKind {
    /// HTTPRoute.
    Http,
    /// GRPCRoute.
    Grpc,
    /// TLSRoute.
    Tls,
    /// TCPRoute.
    Tcp,
    /// UDPRoute.
    Udp,
}

impl RouteKind {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Http, Self::Grpc, Self::Tls, Self::Tcp, Self::Udp];

    /// The kind of route that an object of this kind is, if it is one.
    pub fn of(kind: Kind) -> Option<Self> {
        Self::ALL.iter().copied().find(|route| route.kind() == kind)
    }

    /// The kind of the object.
    pub fn kind(self) -> Kind {
        match self {
            Self::Http => Kind::HttpRoute,
            Self::Grpc => Kind::GrpcRoute,
            Self::Tls => Kind::TlsRoute,
            Self::Tcp => Kind::TcpRoute,
            Self::Udp => Kind::UdpRoute,
        }
    }
}

/// The name of a route. Routes of one namespace stand together, whatever their kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteKey {
    /// Namespace and name.
    pub key: Key,
    /// The kind.
    pub kind: RouteKind,
}

/// A route.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The kind.
    pub kind: RouteKind,
    /// Generation and age.
    pub meta: Meta,
    /// The hosts; none means those of the listener.
    pub hostnames: Box<[HostPattern]>,
    /// Whether every hostname it names was refused: then it is for no host, and not for those of the listener.
    pub is_hostless: bool,
    /// Where it wants to attach.
    pub parents: Box<[ParentRef]>,
    /// Whether it also wants to attach to every default Gateway.
    pub uses_defaults: bool,
    /// The rules.
    pub rules: Box<[RouteRule]>,
    /// Fields of the route itself that cannot be honoured.
    pub refusals: Box<[Refusal]>,
}

/// Where a route wants to attach.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParentRef {
    /// The group.
    pub group: Text,
    /// The kind.
    pub kind: Text,
    /// The namespace, if the route names one.
    pub namespace: Option<Text>,
    /// The name.
    pub name: Text,
    /// One listener, by name.
    pub section: Option<Text>,
    /// Listeners on one port.
    pub port: Option<u16>,
}

impl ParentRef {
    /// Whether it names a Gateway.
    pub fn is_gateway(&self) -> bool {
        *self.group == *GATEWAY_GROUP && &*self.kind == "Gateway"
    }

    /// Whether it names a ListenerSet.
    pub fn is_listener_set(&self) -> bool {
        *self.group == *GATEWAY_GROUP && &*self.kind == "ListenerSet"
    }

    /// The object it names, from a route in this namespace.
    pub fn key(&self, own: &Text) -> Key {
        Key {
            namespace: self.namespace.as_ref().unwrap_or(own).clone(),
            name: self.name.clone(),
        }
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteRule {
    /// Its name.
    pub name: Option<Text>,
    /// The matches that could be understood.
    pub matches: Box<[Match]>,
    /// Filters of the rule.
    pub filters: Option<Box<RouteFilters>>,
    /// Backends, references not yet resolved.
    pub backends: Box<[BackendRef]>,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// When a request is sent again.
    pub retry: Option<Box<Retry>>,
    /// How a client keeps its backend.
    pub session: Option<Box<SessionPersistence>>,
    /// What cannot be honoured in it. Requests that meet a match of such a rule are answered with 500: letting them fall
    /// through to another rule could lead them past the very filter that was asked for.
    pub refusals: Box<[Refusal]>,
}

/// A reference to what answers requests.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceRef {
    /// The group.
    pub group: Text,
    /// The kind.
    pub kind: Text,
    /// The namespace, if it names one.
    pub namespace: Option<Text>,
    /// The name.
    pub name: Text,
    /// The port.
    pub port: Option<u16>,
}

impl ServiceRef {
    /// Reads one. The API has a type of its own for every place where it can stand, all with these fields.
    pub(super) fn reduce(
        (group, kind): (Option<&str>, Option<&str>),
        (namespace, name): (Option<&str>, &str),
        port: Option<i32>,
        names: &mut Interner,
    ) -> Self {
        Self {
            group: names.text(group.unwrap_or_default()),
            kind: names.text(kind.unwrap_or("Service")),
            namespace: names.optional(namespace),
            name: names.text(name),
            port: port.and_then(|port| u16::try_from(port).ok()),
        }
    }

    /// The object it names, from a route in this namespace. Says nothing about whether it may be used.
    pub fn key(&self, own: &Text) -> Key {
        Key {
            namespace: self.namespace.as_ref().unwrap_or(own).clone(),
            name: self.name.clone(),
        }
    }
}

/// A reference to a backend.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendRef {
    /// The backend.
    pub service: ServiceRef,
    /// Its share of the requests.
    pub weight: u32,
    /// Filters of this backend alone.
    pub filters: Option<Box<RouteFilters>>,
}

/// The filters of a rule or a backend, those that refer to something apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteFilters {
    /// The filters that refer to nothing; mirrors and authorisation are empty here.
    pub plain: Filters,
    /// Who else gets a copy of the requests.
    pub mirrors: Box<[MirrorRef]>,
    /// Who is asked whether requests may pass.
    pub auth: Option<AuthRef>,
}

/// A second receiver of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorRef {
    /// The receiver.
    pub service: ServiceRef,
    /// How many of the requests it gets.
    pub share: Share,
}

/// Who is asked whether a request may pass.
#[derive(Clone, Debug, PartialEq)]
pub struct AuthRef {
    /// Who is asked.
    pub service: ServiceRef,
    /// How.
    pub protocol: AuthProtocol,
    /// So many bytes of the body are sent along.
    pub max_body: Option<u32>,
}

/// How a client keeps its backend over several requests.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionPersistence {
    /// What carries the choice.
    pub carrier: Carrier,
    /// The name of the cookie or header.
    pub name: Text,
    /// A session ends so long after it began.
    pub absolute_timeout: Option<Duration>,
    /// A session ends so long after its last request.
    pub idle_timeout: Option<Duration>,
}

impl RouteFilters {
    /// Whether nothing is changed.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn services(&self) -> impl Iterator<Item = &ServiceRef> {
        let mirrors = self.mirrors.iter().map(|mirror| &mirror.service);
        mirrors.chain(self.auth.as_ref().map(|auth| &auth.service))
    }
}

impl Route {
    /// Reads a route of any kind; none if the object is no route.
    pub(crate) fn reduce(object: &Object, names: &mut Interner) -> Option<Self> {
        Some(match object {
            Object::HttpRoute(route) => Self::of_http(route, names),
            Object::GrpcRoute(route) => Self::of_grpc(route, names),
            Object::TlsRoute(route) => Self::of_tls(route, names),
            Object::TcpRoute(route) => Self::of_tcp(route, names),
            Object::UdpRoute(route) => Self::of_udp(route, names),
            _ => return None,
        })
    }

    /// Everything that the rules refer to, be it as backend, as mirror or for authorisation.
    pub fn services(&self) -> impl Iterator<Item = &ServiceRef> {
        self.rules.iter().flat_map(|rule| {
            let own = rule.filters.iter().flat_map(|filters| filters.services());
            let backends = rule.backends.iter().flat_map(|backend| {
                let filters = backend.filters.iter().flat_map(|filters| filters.services());
                std::iter::once(&backend.service).chain(filters)
            });
            own.chain(backends)
        })
    }
}
