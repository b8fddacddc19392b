//! On which terms TLS is spoken to backends: whom to believe, whom to ask for, and what to show.
//!
//! Compiled off the workers whenever clusters or the gateway's own certificate change. Equal terms are one object for as
//! long as anybody holds it, so that a changed table keeps warm connections; endpoints are told apart by that object, so
//! that a connection made on one cluster's terms never carries a request of another's.

use std::{
    io,
    sync::{Arc, LazyLock, Weak},
};

use ahash::AHashMap;
use aws_lc_rs::digest::{Context, SHA256};
use gatewright_ir::{
    Certificate, Cluster, ClusterId, Gateway, Security, SubjectName, Trust, UpstreamProtocol, UpstreamTls,
};
use imbl::{OrdMap, ordmap::DiffItem};
use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    sign::{CertifiedKey, SingleCertAndKey},
};

use super::verify::BackendVerifier;
use crate::tls::{PROVIDER, VERSIONS, roots};

/// The terms of TLS to the endpoints of a cluster.
#[derive(Debug)]
pub(crate) struct BackendTls {
    name: Option<ServerName<'static>>,
    /// For HTTP/1.1, for HTTP/2, and for what is not agreed on; absent if the terms cannot be honoured.
    configs: Option<[Arc<ClientConfig>; 3]>,
}

impl BackendTls {
    /// The configuration for what is to be spoken, and the name to ask for.
    pub(super) fn terms(&self, protocol: UpstreamProtocol) -> io::Result<(&Arc<ClientConfig>, &ServerName<'static>)> {
        match (&self.configs, &self.name) {
            (Some([http1, http2, raw]), Some(name)) => Ok((
                match protocol {
                    UpstreamProtocol::Http1 => http1,
                    UpstreamProtocol::Http2 => http2,
                    UpstreamProtocol::Tcp | UpstreamProtocol::Udp => raw,
                },
                name,
            )),
            _ => Err(io::Error::other("the backend's TLS settings cannot be used")),
        }
    }

    fn new(tls: &UpstreamTls, identity: Option<&Certificate>) -> Self {
        let name = ServerName::try_from(tls.hostname.to_string()).ok();
        let configs = configs(tls, identity)
            .inspect_err(|error| tracing::warn!(hostname = %tls.hostname, %error, "TLS to a backend cannot be configured; nothing is sent to it"))
            .ok();
        Self { name, configs }
    }
}

fn configs(tls: &UpstreamTls, identity: Option<&Certificate>) -> Result<[Arc<ClientConfig>; 3], rustls::Error> {
    let verifier = Arc::new(BackendVerifier {
        roots: match &tls.trust {
            Trust::System => Arc::clone(&SYSTEM),
            Trust::Given(authorities) => Arc::new(roots(authorities)),
        },
        names: tls.names.clone(),
        algorithms: PROVIDER.signature_verification_algorithms,
    });
    let shown = identity.map(certified).transpose()?.map(Arc::new);
    let config = |protocols: &[&[u8]]| {
        let builder = ClientConfig::builder_with_provider(Arc::clone(&PROVIDER))
            .with_protocol_versions(&VERSIONS)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as _);
        let mut config = match &shown {
            Some(shown) => builder.with_client_cert_resolver(Arc::clone(shown) as _),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        // One name is asked for, so there is one place for sessions; it holds several.
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        Ok::<_, rustls::Error>(Arc::new(config))
    };
    Ok([config(&[b"http/1.1"])?, config(&[b"h2"])?, config(&[])?])
}

/// How many sessions are remembered per configuration.
const SESSIONS: usize = 8;

fn certified(identity: &Certificate) -> Result<SingleCertAndKey, rustls::Error> {
    let chain = identity.chain.iter().cloned().map(CertificateDer::from).collect();
    let key = PrivateKeyDer::try_from(identity.key.expose().to_vec())
        .map_err(|error| rustls::Error::General(error.to_owned()))?;
    CertifiedKey::from_der(chain, key, &PROVIDER).map(SingleCertAndKey::from)
}

/// Whom this system believes. Read once, when a cluster first asks for it, and never by a worker.
static SYSTEM: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Systems keep certificates that are no use to us; the others count.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let error = found.errors.first().map(ToString::to_string).unwrap_or_default();
        tracing::error!(%error, "this system has no certificate authorities; backends that must be known by them are not reached");
    }
    Arc::new(roots)
});

/// The terms of the clusters of one gateway that are spoken to over TLS.
pub(crate) type ClusterTls = OrdMap<ClusterId, Arc<BackendTls>>;

/// Everything that was compiled and that somebody still holds, by what it was made from.
#[derive(Debug, Default)]
pub(crate) struct KnownTls(AHashMap<[u8; 32], Weak<BackendTls>>);

impl KnownTls {
    /// Follows a change of a gateway's clusters or of its own certificate.
    pub(crate) fn follow(&mut self, compiled: &ClusterTls, old: Option<&Gateway>, new: &Gateway) -> ClusterTls {
        let Some(old) = old else { return self.compile(new) };
        let is_same_identity = match (&old.identity, &new.identity) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new) || old == new,
            (None, None) => true,
            _ => false,
        };
        if !is_same_identity {
            return self.compile(new);
        }
        let mut compiled = compiled.clone();
        for change in old.clusters.diff(&new.clusters) {
            let (id, before, after) = match change {
                DiffItem::Add(id, after) => (id, None, Some(after)),
                DiffItem::Update {
                    old: (_, before),
                    new: (id, after),
                } => (id, Some(before), Some(after)),
                DiffItem::Remove(id, _) => (id, None, None),
            };
            match (
                before.and_then(|before| terms(before)),
                after.and_then(|after| terms(after)),
            ) {
                (Some(before), Some(after)) if Arc::ptr_eq(before, after) => {}
                (_, Some(after)) => _ = compiled.insert(id.clone(), self.get(after, new.identity.as_deref())),
                (_, None) => _ = compiled.remove(id),
            }
        }
        compiled
    }

    fn compile(&mut self, gateway: &Gateway) -> ClusterTls {
        let clusters = gateway.clusters.iter();
        let secured = clusters.filter_map(|(id, cluster)| Some((id, terms(cluster)?)));
        secured
            .map(|(id, tls)| (id.clone(), self.get(tls, gateway.identity.as_deref())))
            .collect()
    }

    fn get(&mut self, tls: &UpstreamTls, identity: Option<&Certificate>) -> Arc<BackendTls> {
        let digest = digest(tls, identity);
        if let Some(known) = self.0.get(&digest).and_then(Weak::upgrade) {
            return known;
        }
        if self.0.len() == self.0.capacity() {
            self.0.retain(|_, known| known.strong_count() > 0);
        }
        let made = Arc::new(BackendTls::new(tls, identity));
        self.0.insert(digest, Arc::downgrade(&made));
        made
    }
}

fn terms(cluster: &Cluster) -> Option<&Arc<UpstreamTls>> {
    match &cluster.security {
        Security::Tls(tls) => Some(tls),
        Security::Clear | Security::Refused => None,
    }
}

/// What tells terms apart. Where they come from does not.
fn digest(tls: &UpstreamTls, identity: Option<&Certificate>) -> [u8; 32] {
    let UpstreamTls { hostname, trust, names } = tls;
    let mut context = Context::new(&SHA256);
    // Every part says what it is and how long, so that no two sequences of parts look the same.
    let mut add = |kind: u8, bytes: &[u8]| {
        context.update(&[kind]);
        context.update(&(bytes.len() as u64).to_be_bytes());
        context.update(bytes);
    };
    add(0, hostname.as_bytes());
    match trust {
        Trust::System => add(1, &[]),
        Trust::Given(authorities) => {
            add(2, &[]);
            for certificate in authorities.iter().flat_map(|authority| authority.certificates.iter()) {
                add(3, certificate);
            }
        }
    }
    for name in names {
        match name {
            SubjectName::Dns(pattern) => add(4, pattern.to_string().as_bytes()),
            SubjectName::Uri(uri) => add(5, uri.as_bytes()),
        }
    }
    if let Some(identity) = identity {
        for certificate in &identity.chain {
            add(6, certificate);
        }
        add(7, identity.key.expose());
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

#[cfg(test)]
mod tests;
