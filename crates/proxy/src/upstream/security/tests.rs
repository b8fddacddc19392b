//! Which terms are one and the same, and that following changes comes to what starting anew comes to.

use std::sync::Arc;

use gatewright_ir::{
    Authority, Certificate, Cluster, ClusterId, Endpoints, Gateway, HostPattern, Origin, PrivateKey, Security,
    SubjectName, Trust, UpstreamProtocol, UpstreamTls,
};
use imbl::OrdMap;

use super::{BackendTls, ClusterTls, KnownTls};

fn authority(origin: &str) -> Arc<Authority> {
    Arc::new(Authority {
        origin: Origin::new(origin),
        // Whether it can be used as one is of no concern to what it is told apart by.
        certificates: vec![b"certificate".to_vec()].into(),
    })
}

fn terms() -> UpstreamTls {
    UpstreamTls {
        hostname: "a.test".into(),
        trust: Trust::Given(vec![authority("one")]),
        names: vec![SubjectName::Uri("spiffe://a".into())],
    }
}

fn tls(terms: UpstreamTls) -> Security {
    Security::Tls(Arc::new(terms))
}

fn gateway(identity: Option<&Arc<Certificate>>, clusters: &[(&str, Security)]) -> Gateway {
    let cluster = |security: &Security| {
        Arc::new(Cluster {
            origin: Origin::new("service"),
            protocol: UpstreamProtocol::Http1,
            security: security.clone(),
            endpoints: Endpoints::Known(Vec::new()),
            is_by_client: false,
            retry_budget: None,
        })
    };
    Gateway {
        origin: Origin::new("gateway"),
        generation: 1,
        listeners: Vec::new(),
        identity: identity.cloned(),
        clusters: clusters
            .iter()
            .map(|(id, security)| (ClusterId::new(*id), cluster(security)))
            .collect(),
    }
}

fn identity() -> Arc<Certificate> {
    let made = rcgen::generate_simple_self_signed(["gateway.test".to_owned()]).unwrap();
    Arc::new(Certificate {
        origin: Origin::new("secret"),
        names: Vec::new(),
        chain: vec![made.cert.der().to_vec()],
        key: PrivateKey::new(made.signing_key.serialize_der()),
        staple: None,
    })
}

fn get<'a>(compiled: &'a ClusterTls, id: &str) -> Option<&'a Arc<BackendTls>> {
    compiled.get(&ClusterId::new(id))
}

#[test]
fn equal_terms_are_one_and_others_are_not() {
    let mut known = KnownTls::default();
    let renamed = UpstreamTls {
        trust: Trust::Given(vec![authority("another name of the same")]),
        ..terms()
    };
    let different = [
        UpstreamTls {
            hostname: "b.test".into(),
            ..terms()
        },
        UpstreamTls {
            trust: Trust::System,
            ..terms()
        },
        UpstreamTls {
            trust: Trust::Given(Vec::new()),
            ..terms()
        },
        UpstreamTls {
            names: Vec::new(),
            ..terms()
        },
        UpstreamTls {
            names: vec![SubjectName::Dns(HostPattern::parse("a.test").unwrap())],
            ..terms()
        },
    ];
    let same = gateway(
        None,
        &[("one", tls(terms())), ("two", tls(terms())), ("three", tls(renamed))],
    );
    let compiled = known.follow(&OrdMap::new(), None, &same);
    let one = get(&compiled, "one").unwrap();
    assert!(
        ["two", "three"]
            .iter()
            .all(|id| Arc::ptr_eq(one, get(&compiled, id).unwrap()))
    );
    let mut all = vec![Arc::clone(one)];
    for terms in different {
        let compiled = known.follow(&OrdMap::new(), None, &gateway(None, &[("one", tls(terms))]));
        all.push(Arc::clone(get(&compiled, "one").unwrap()));
    }
    for shown in [identity(), identity()] {
        let compiled = known.follow(&OrdMap::new(), None, &gateway(Some(&shown), &[("one", tls(terms()))]));
        all.push(Arc::clone(get(&compiled, "one").unwrap()));
    }
    all.sort_by_key(|terms| Arc::as_ptr(terms).addr());
    let count = all.len();
    all.dedup_by(|one, other| Arc::ptr_eq(one, other));
    assert_eq!(all.len(), count);
}

#[test]
fn following_changes_comes_to_what_starting_anew_comes_to() {
    let mut known = KnownTls::default();
    let (first, second) = (identity(), identity());
    let other = UpstreamTls {
        hostname: "b.test".into(),
        ..terms()
    };
    let shared = tls(terms());
    let steps = [
        gateway(None, &[("a", shared.clone()), ("b", Security::Clear)]),
        gateway(None, &[("a", shared.clone()), ("b", tls(other.clone()))]),
        gateway(Some(&first), &[("a", shared.clone()), ("b", tls(other.clone()))]),
        gateway(Some(&second), &[("a", shared.clone()), ("b", Security::Refused)]),
        gateway(Some(&second), &[("a", Security::Clear), ("b", shared.clone())]),
        gateway(Some(&second), &[("b", tls(other))]),
        gateway(None, &[("b", shared)]),
        gateway(None, &[]),
    ];
    let mut compiled = ClusterTls::new();
    let mut before = None;
    for step in &steps {
        compiled = known.follow(&compiled, before, step);
        let anew = known.follow(&ClusterTls::new(), None, step);
        let pairs = |compiled: &ClusterTls| -> Vec<_> {
            let terms = compiled.iter();
            terms
                .map(|(id, terms)| (id.clone(), Arc::as_ptr(terms).addr()))
                .collect()
        };
        assert_eq!(pairs(&compiled), pairs(&anew));
        before = Some(step);
    }
    assert!(compiled.is_empty());
}

#[test]
fn what_nobody_holds_is_forgotten() {
    let mut known = KnownTls::default();
    for number in 0..10_000 {
        let terms = UpstreamTls {
            hostname: format!("{number}.test").into(),
            trust: Trust::Given(Vec::new()),
            names: Vec::new(),
        };
        known.follow(&OrdMap::new(), None, &gateway(None, &[("one", tls(terms))]));
    }
    assert!(known.0.len() < 100, "{}", known.0.len());
}
