//! Listeners: what they can serve, whether they clash, and their certificates.

use std::sync::Arc;

use ahash::AHashMap;
use gatewright_api::{GATEWAY_GROUP, Kind};
use gatewright_ir::{Certificate, Text};
use gatewright_world::{
    Key, World,
    desired::Reason,
    object::{Gateway, Listener, ListenerProtocol, Secret, SecretRef},
    origin,
    resolve::{Granted, Reference, Referrer, Refused},
};

use super::{Frame, ListenerFrame, Trouble};

/// The kinds of routes that HTTP and HTTPS listeners take.
const HTTP_KINDS: &[&str] = &["HTTPRoute", "GRPCRoute"];

pub(super) fn build(world: &World, key: &Key, gateway: &Gateway, previous: Option<&Frame>) -> Vec<ListenerFrame> {
    let known: Vec<&Arc<Certificate>> = previous
        .into_iter()
        .flat_map(|frame| &frame.listeners)
        .flat_map(|listener| &listener.certificates)
        .collect();
    let mut frames: Vec<ListenerFrame> = gateway
        .listeners
        .iter()
        .map(|listener| build_one(world, key, listener, &known))
        .collect();
    mark_conflicts(&mut frames);
    mark_overlaps(&mut frames);
    frames
}

fn build_one(world: &World, key: &Key, listener: &Arc<Listener>, known: &[&Arc<Certificate>]) -> ListenerFrame {
    let supported: &[&'static str] = match &listener.protocol {
        ListenerProtocol::Http | ListenerProtocol::Https => HTTP_KINDS,
        ListenerProtocol::Other(_) => &[],
    };
    let (kinds, mut unresolved) = route_kinds(listener, supported);
    let refused = match &listener.protocol {
        ListenerProtocol::Other(name) => Some(Trouble::new(
            Reason::UnsupportedProtocol,
            format!("protocol {name} is not supported; use HTTP or HTTPS"),
        )),
        ListenerProtocol::Http | ListenerProtocol::Https => listener.refusals.first().map(|refusal| {
            Trouble::new(
                Reason::UnsupportedValue,
                format!("{}: {}", refusal.field, refusal.message),
            )
        }),
    };
    let mut certificates = Vec::new();
    if listener.protocol == ListenerProtocol::Https {
        for reference in &listener.certificates {
            match certificate(world, key, reference) {
                Ok(certificate) => {
                    let shared = known.iter().find(|known| ****known == certificate);
                    certificates.push(shared.map_or_else(|| Arc::new(certificate), |known| Arc::clone(known)));
                }
                Err(trouble) => {
                    unresolved.get_or_insert(trouble);
                }
            }
        }
        if listener.certificates.is_empty() {
            let message = "an HTTPS listener needs a certificate; name a Secret in tls.certificateRefs";
            unresolved.get_or_insert(Trouble::new(Reason::InvalidCertificateRef, message));
        }
    }
    ListenerFrame {
        origin: origin::listener(key, &listener.name),
        declared: listener.clone(),
        kinds,
        refused,
        is_conflicted: false,
        unresolved,
        overlapping: None,
        certificates,
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

fn certificate(world: &World, key: &Key, reference: &SecretRef) -> Result<Certificate, Trouble> {
    let SecretRef {
        group,
        kind,
        namespace,
        name,
    } = reference;
    let shown = format!("{}/{name}", namespace.as_ref().unwrap_or(&key.namespace));
    let from = Referrer::Namespaced(Kind::Gateway, &key.namespace);
    let to = Reference {
        group,
        kind,
        namespace: namespace.as_ref(),
        name,
    };
    let granted: Granted<Secret> = world.resolve(from, to).map_err(|refused| match refused {
        Refused::InvalidKind => Trouble::new(
            Reason::InvalidCertificateRef,
            format!("a certificate must be a Secret of the core group, not a {kind} of group {group:?}"),
        ),
        Refused::NotPermitted => Trouble::new(
            Reason::RefNotPermitted,
            format!(
                "no ReferenceGrant in the namespace of Secret {shown} lets Gateways of namespace {} use it",
                key.namespace
            ),
        ),
        Refused::NotFound => Trouble::new(Reason::InvalidCertificateRef, format!("Secret {shown} does not exist")),
    })?;
    let tls = world.read(&granted).map(|secret| &secret.tls);
    match tls {
        Some(Ok(material)) => Ok(Certificate {
            origin: origin::object(Kind::Secret, granted.key()),
            names: material.names.clone(),
            chain: material.chain.clone(),
            key: material.key.clone(),
            staple: None,
        }),
        Some(Err(problem)) => Err(Trouble::new(
            Reason::InvalidCertificateRef,
            format!("Secret {shown} cannot be used: {problem}"),
        )),
        None => Err(Trouble::new(
            Reason::InvalidCertificateRef,
            format!("Secret {shown} does not exist"),
        )),
    }
}

/// Marks every listener that clashes with another of the same Gateway. The specification forbids to pick a winner, also
/// when one of them is refused for another reason. Protocols that are not spoken here clash with nothing.
fn mark_conflicts(frames: &mut [ListenerFrame]) {
    let mut ports: AHashMap<u16, Vec<usize>> = AHashMap::new();
    for (index, frame) in frames.iter().enumerate() {
        if !matches!(frame.declared.protocol, ListenerProtocol::Other(_)) {
            ports.entry(frame.declared.port).or_default().push(index);
        }
    }
    let mut conflicts: Vec<(usize, Trouble)> = Vec::new();
    for (port, indexes) in ports {
        let listeners = || {
            indexes
                .iter()
                .filter_map(|index| Some((*index, &frames.get(*index)?.declared)))
        };
        for (index, own) in listeners() {
            let others = || listeners().filter(|(other, _)| *other != index);
            if let Some((_, other)) = others().find(|(_, other)| other.protocol != own.protocol) {
                let message = format!(
                    "listener {} speaks another protocol on port {port}; give one of them another port",
                    other.name
                );
                conflicts.push((index, Trouble::new(Reason::ProtocolConflict, message)));
            } else if let Some((_, other)) = others().find(|(_, other)| other.hostname == own.hostname) {
                let message = format!(
                    "listener {} has the same hostname on port {port}; give one of them another hostname or port",
                    other.name
                );
                conflicts.push((index, Trouble::new(Reason::HostnameConflict, message)));
            }
        }
    }
    for (index, trouble) in conflicts {
        if let Some(frame) = frames.get_mut(index) {
            frame.refused = Some(trouble);
            frame.is_conflicted = true;
        }
    }
}

/// Marks the TLS listeners on one port whose hostnames have names in common, each with the first that it overlaps with.
fn mark_overlaps(frames: &mut [ListenerFrame]) {
    let served = |frame: &&ListenerFrame| frame.refused.is_none() && frame.declared.protocol == ListenerProtocol::Https;
    let overlaps: Vec<Option<Text>> = frames
        .iter()
        .map(|frame| {
            let own = served(&frame).then_some(&frame.declared)?;
            let others = frames.iter().filter(served).map(|other| &other.declared);
            let mut others = others.filter(|other| other.port == own.port && other.name != own.name);
            let other = others.find(|other| other.hostname.intersect(&own.hostname).is_some())?;
            Some(other.name.clone())
        })
        .collect();
    for (frame, overlapping) in frames.iter_mut().zip(overlaps) {
        frame.overlapping = overlapping;
    }
}
