use gatewright_api::{Kind, Object};
use serde_json::{Value, json};

use super::{Known, Message};
use crate::{Change, kube::raw::Raw};

fn apply(known: &mut Known, value: Value) -> Option<Change> {
    match known.apply(Raw::of(value).unwrap()) {
        Some(Message::Changed { change, .. }) => change,
        Some(_) => panic!("something else is said"),
        None => None,
    }
}

fn config_map(version: u32, authorities: &str, other: &str) -> Value {
    json!({
        "metadata": {"name": "ca", "namespace": "shop", "uid": "u", "resourceVersion": version.to_string(),
                     "annotations": {"control-plane.alpha.kubernetes.io/leader": other}, "labels": {"a": other}},
        "data": {"ca.crt": authorities, "other": other}, "binaryData": {"large": "AAAA"}, "immutable": false,
    })
}

#[test]
fn of_a_config_map_only_the_authorities_are_kept_and_only_their_change_is_said() {
    let mut known = Known::new(Kind::ConfigMap, "us".into());
    let Some(Change::Apply(object)) = apply(&mut known, config_map(1, "one", "x")) else {
        panic!("it is new");
    };
    let Object::ConfigMap(map) = *object else { panic!() };
    assert_eq!(
        map.data.unwrap().into_iter().collect::<Vec<_>>(),
        [("ca.crt".to_owned(), "one".to_owned())]
    );
    assert_eq!(map.binary_data.unwrap_or_default().len(), 0);
    assert_eq!(
        (map.metadata.annotations, map.metadata.labels, map.immutable),
        (None, None, None)
    );
    assert_eq!(map.metadata.uid.as_deref(), Some("u"));
    assert!(
        apply(&mut known, config_map(2, "one", "y")).is_none(),
        "a lock was written"
    );
    assert!(matches!(
        apply(&mut known, config_map(3, "two", "y")),
        Some(Change::Apply(_))
    ));
}

#[test]
fn a_status_that_we_write_is_no_change_of_the_object() {
    let kinds = [
        Kind::ListenerSet,
        Kind::BackendTlsPolicy,
        Kind::TlsRoute,
        Kind::TcpRoute,
        Kind::UdpRoute,
    ];
    for kind in kinds {
        let mut known = Known::new(kind, "us".into());
        let object = |version: u32, status: &str| {
            json!({"metadata": {"name": "a", "namespace": "shop", "resourceVersion": version.to_string()},
                   "spec": {}, "status": {"conditions": [{"type": status}]}})
        };
        assert!(apply(&mut known, object(1, "Accepted")).is_some());
        let said = known.apply(Raw::of(object(2, "Programmed")).unwrap());
        let Some(Message::Changed {
            change: None,
            observed: Some(observed),
        }) = said
        else {
            panic!("{kind}: what it shows is said, and nothing else");
        };
        assert_eq!(observed.name().kind, kind);
    }
}
