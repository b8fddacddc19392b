//! Listeners of a Gateway and of the ListenerSets that add to it: what they can serve, and what they refer to.

use std::sync::Arc;

use gatewright_api::{GATEWAY_GROUP, Kind};
use gatewright_ir::{Certificate, ClientValidation, Text};
use gatewright_world::{
    Key, World,
    desired::Reason,
    object::{FrontendValidation, Gateway, Listener, ListenerProtocol},
    origin,
};

use super::{
    Frame, ListenerFrame, Trouble,
    certificates::{self, Known},
    conflicts,
};
use crate::{
    authorities::{self, Asking},
    route::is_allowed,
};

/// The kinds of routes that listeners take, by what they speak.
fn supported_kinds(protocol: &ListenerProtocol) -> &'static [&'static str] {
    match protocol {
        ListenerProtocol::Http | ListenerProtocol::Https => &["HTTPRoute", "GRPCRoute"],
        // What was in TLS is a connection like any other.
        ListenerProtocol::Tls => &["TLSRoute", "TCPRoute"],
        ListenerProtocol::Passthrough => &["TLSRoute"],
        ListenerProtocol::Tcp => &["TCPRoute"],
        ListenerProtocol::Udp => &["UDPRoute"],
        ListenerProtocol::Other(_) => &[],
    }
}

/// The listeners of a Gateway, then those of the ListenerSets that it allows, in the order in which they count.
pub(super) fn build(world: &World, key: &Key, gateway: &Gateway, previous: Option<&Frame>) -> Vec<ListenerFrame> {
    let builder = Builder {
        world,
        gateway_key: key,
        gateway,
        known: Known::of(previous),
        validations: previous
            .into_iter()
            .flat_map(|frame| &frame.listeners)
            .filter_map(|listener| listener.clients.as_ref())
            .collect(),
    };
    let own = gateway.listeners.iter();
    let mut frames: Vec<ListenerFrame> = own.map(|listener| builder.build(listener, None)).collect();
    let own = frames.len();
    for (set, declared) in world.sets_of_gateway(key) {
        if allows_set(world, key, gateway, set) && declared.refusals.is_empty() {
            frames.extend(
                declared
                    .listeners
                    .iter()
                    .map(|listener| builder.build(listener, Some(set))),
            );
        }
    }
    conflicts::mark(&mut frames, own);
    conflicts::mark_overlaps(&mut frames);
    frames
}

/// Whether a Gateway lets a ListenerSet add to it.
pub(super) fn allows_set(world: &World, key: &Key, gateway: &Gateway, set: &Key) -> bool {
    is_allowed(world, &gateway.allowed_sets, &key.namespace, &set.namespace)
}

struct Builder<'a> {
    world: &'a World,
    gateway_key: &'a Key,
    gateway: &'a Gateway,
    known: Known<'a>,
    validations: Vec<&'a Arc<ClientValidation>>,
}

impl Builder<'_> {
    fn build(&self, listener: &Arc<Listener>, set: Option<&Key>) -> ListenerFrame {
        let (kind, owner) = match set {
            Some(set) => (Kind::ListenerSet, set),
            None => (Kind::Gateway, self.gateway_key),
        };
        let (kinds, mut unresolved) = route_kinds(listener, supported_kinds(&listener.protocol));
        let mut refused = match &listener.protocol {
            ListenerProtocol::Other(name) => Some(Trouble::new(
                Reason::UnsupportedProtocol,
                format!("protocol {name} is not supported; use HTTP, HTTPS, TLS, TCP or UDP"),
            )),
            _ => listener.refusals.first().map(|refusal| {
                Trouble::new(
                    Reason::UnsupportedValue,
                    format!("{}: {}", refusal.field, refusal.message),
                )
            }),
        };
        let mut certificates = Vec::new();
        if listener.protocol.terminates_tls() {
            certificates = self.certificates(listener, kind, &owner.namespace, &mut unresolved);
        }
        let validation = self.gateway.frontend.on(listener.port);
        let mut clients = None;
        if let (ListenerProtocol::Https, Some(validation)) = (&listener.protocol, validation) {
            clients = self.clients(validation, &mut unresolved);
            if clients.is_none() {
                let message = "no authority is left that could say who a client is; the listener stays closed";
                refused.get_or_insert(Trouble::new(Reason::NoValidCACertificate, message));
            }
        }
        ListenerFrame {
            origin: origin::listener(kind, owner, &listener.name),
            set: set.cloned(),
            declared: listener.clone(),
            kinds,
            refused,
            is_conflicted: false,
            unresolved,
            overlapping: None,
            certificates,
            clients,
        }
    }

    fn certificates(
        &self,
        listener: &Listener,
        kind: Kind,
        namespace: &Text,
        unresolved: &mut Option<Trouble>,
    ) -> Vec<Arc<Certificate>> {
        let mut certificates = Vec::new();
        for reference in &listener.certificates {
            let asking = certificates::Asking {
                world: self.world,
                kind,
                namespace,
                invalid: Reason::InvalidCertificateRef,
            };
            match certificates::resolve(&asking, reference) {
                Ok((certificate, trouble)) => {
                    certificates.push(self.known.share(certificate));
                    if let Some(trouble) = trouble {
                        unresolved.get_or_insert(trouble);
                    }
                }
                Err(trouble) => {
                    unresolved.get_or_insert(trouble);
                }
            }
        }
        if listener.certificates.is_empty() {
            let message = format!(
                "a listener of protocol {} needs a certificate; name a Secret in tls.certificateRefs",
                listener.protocol.as_str()
            );
            unresolved.get_or_insert(Trouble::new(Reason::InvalidCertificateRef, message));
        }
        certificates
    }

    /// Which clients may connect; none if nobody could be known.
    fn clients(
        &self,
        validation: &FrontendValidation,
        unresolved: &mut Option<Trouble>,
    ) -> Option<Arc<ClientValidation>> {
        let asking = Asking {
            world: self.world,
            kind: Kind::Gateway,
            namespace: &self.gateway_key.namespace,
            wrong_kind: Reason::InvalidCACertificateKind,
        };
        let (authorities, trouble) = authorities::resolve(&asking, &validation.authorities);
        if let Some(trouble) = trouble {
            unresolved.get_or_insert(trouble);
        }
        if authorities.is_empty() {
            return None;
        }
        let made = ClientValidation {
            authorities,
            is_optional: validation.is_optional,
        };
        let known = self.validations.iter().find(|known| ****known == made);
        Some(known.map_or_else(|| Arc::new(made), |known| Arc::clone(known)))
    }
}

/// The kinds that can attach, and what is wrong with those asked for.
fn route_kinds(listener: &Listener, supported: &[&'static str]) -> (Vec<&'static str>, Option<Trouble>) {
    if listener.kinds.is_empty() {
        return (supported.to_vec(), None);
    }
    let mut kinds = Vec::new();
    let mut trouble = None;
    for asked in &listener.kinds {
        let found = supported
            .iter()
            .find(|kind| **kind == &*asked.kind && *asked.group == *GATEWAY_GROUP);
        if let Some(kind) = found {
            if !kinds.contains(kind) {
                kinds.push(*kind);
            }
        } else {
            let group = match &*asked.group {
                GATEWAY_GROUP => String::new(),
                group => format!(" of group {group:?}"),
            };
            let possible = match supported {
                [] => "no routes at all".to_owned(),
                supported => supported.join(", "),
            };
            let message = format!(
                "routes of kind {}{group} cannot attach to this listener, which can take {possible}",
                asked.kind
            );
            trouble.get_or_insert(Trouble::new(Reason::InvalidRouteKinds, message));
        }
    }
    (kinds, trouble)
}
