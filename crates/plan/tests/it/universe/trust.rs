//! Certificates, authorities, who asks for them, and what time it is.

use std::sync::LazyLock;

use gatewright_api::Kind;
use proptest::prelude::*;
use serde_json::json;

use super::{Edit, NAMESPACES, pick};

/// The 10th and the 20th of January 2026: when the certificates that do not last begin or cease to be valid.
const DAYS: [i64; 2] = [1_768_003_200, 1_768_867_200];

/// Certificates with their keys, made once: making one takes milliseconds.
static CERTIFICATES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let make = |name: &str, from: u8, to: Option<u8>| {
        let mut made = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        made.not_before = rcgen::date_time_ymd(2026, 1, from);
        if let Some(to) = to {
            made.not_after = rcgen::date_time_ymd(2026, 1, to);
        }
        let key = rcgen::KeyPair::generate().unwrap();
        (made.self_signed(&key).unwrap().pem(), key.serialize_pem())
    };
    vec![
        make("a.x.com", 1, None),
        make("y.com", 1, None),
        make("a.x.com", 10, None),
        make("a.x.com", 1, Some(20)),
    ]
});

pub(super) fn base() -> Vec<Edit> {
    let mut edits = vec![Edit::Time(DAYS[0] + 1)];
    for namespace in NAMESPACES {
        edits.push(secret_of(namespace, "good", 0));
        edits.push(authorities_of(namespace, Some(0)));
        let target = json!({"group": "", "kind": "Service", "name": "api"});
        let authority = json!({"group": "", "kind": "ConfigMap", "name": "ca"});
        edits.push(Edit::Apply(
            Kind::BackendTlsPolicy,
            json!({
                "metadata": {"namespace": namespace, "name": "p0", "generation": 1},
                "spec": {"targetRefs": [target], "validation": {"hostname": "x.com", "caCertificateRefs": [authority]}},
            }),
        ));
    }
    edits
}

fn secret_of(namespace: &str, name: &str, index: usize) -> Edit {
    let (index, key) = match name {
        "young" => (2, 2),
        "old" => (3, 3),
        "bad" => (index, 1 - index),
        _ => (index, index),
    };
    let data = json!({"tls.crt": CERTIFICATES[index].0, "tls.key": CERTIFICATES[key].1});
    Edit::Apply(
        Kind::Secret,
        json!({"metadata": {"namespace": namespace, "name": name}, "stringData": data}),
    )
}

pub(super) fn secret() -> impl Strategy<Value = Edit> {
    let name = pick(&["good", "young", "old", "bad"]);
    (pick(&NAMESPACES), name, 0..2usize).prop_map(|(namespace, name, index)| secret_of(namespace, name, index))
}

fn authorities_of(namespace: &str, index: Option<usize>) -> Edit {
    let data = match index {
        Some(index) => json!({"ca.crt": CERTIFICATES[index].0}),
        None => json!({"ca.crt": ""}),
    };
    Edit::Apply(
        Kind::ConfigMap,
        json!({"metadata": {"namespace": namespace, "name": "ca"}, "data": data}),
    )
}

pub(super) fn authorities() -> impl Strategy<Value = Edit> {
    let index = pick(&[None, Some(0), Some(1)]);
    (pick(&NAMESPACES), index).prop_map(|(namespace, index)| authorities_of(namespace, index))
}

/// Policies of different ages for the same Services and their ports.
pub(super) fn tls_policy() -> impl Strategy<Value = Edit> {
    let target =
        |name: &str, port: Option<&str>| json!({"group": "", "kind": "Service", "name": name, "sectionName": port});
    let targets = pick(&[
        json!([target("web", None)]),
        json!([target("web", Some("http"))]),
        json!([target("api", None), target("web", None)]),
        json!([target("api", Some("http")), target("web", None)]),
        json!([target("none", None)]),
        json!([target("web", None), {"group": "x.com", "kind": "Y", "name": "z"}]),
    ]);
    let authority = |kind: &str, name: &str| json!({"group": "", "kind": kind, "name": name});
    let validation = pick(&[
        json!({"caCertificateRefs": [authority("ConfigMap", "ca")]}),
        json!({"caCertificateRefs": [authority("ConfigMap", "ca"), authority("ConfigMap", "none")]}),
        json!({"caCertificateRefs": [authority("Service", "web")]}),
        json!({"caCertificateRefs": [authority("ConfigMap", "none")]}),
        json!({"wellKnownCACertificates": "System"}),
        json!({"wellKnownCACertificates": "System", "subjectAltNames": [{"type": "URI", "uri": "spiffe://x/y"}]}),
    ]);
    let created = pick(&["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]);
    let names = (pick(&NAMESPACES), pick(&["p0", "p1"]), 1..4i64);
    (names, targets, validation, pick(&["x.com", "y.com", "bad_host"]), created).prop_map(
        |((namespace, name, generation), targets, mut validation, hostname, created)| {
            validation["hostname"] = json!(hostname);
            Edit::Apply(
                Kind::BackendTlsPolicy,
                json!({
                    "metadata": {"namespace": namespace, "name": name, "generation": generation, "creationTimestamp": created},
                    "spec": {"targetRefs": targets, "validation": validation},
                }),
            )
        },
    )
}

/// Before, at and after each time at which something changes; clocks also go back.
pub(super) fn time() -> impl Strategy<Value = Edit> {
    (pick(&DAYS), -1..3i64).prop_map(|(day, seconds)| Edit::Time(day + seconds))
}
