use gatewright_api::{Kind, ObjectName};
use serde_json::{Value, json};

use super::{Owner, Whose, full, is_as_wanted, whose};
use crate::kube::{
    discovery,
    raw::Raw,
    writer::{OwnedKind, OwnedName},
};

const US: &str = "example.com/us";

fn owner() -> ObjectName {
    ObjectName {
        kind: Kind::Gateway,
        namespace: "shop".to_owned(),
        name: "edge".to_owned(),
    }
}

fn applied(value: &Value) -> super::Full {
    let name = OwnedName {
        kind: OwnedKind::SERVICE,
        namespace: "shop".to_owned(),
        name: "edge-entry".to_owned(),
    };
    let parent = Owner {
        name: &owner(),
        resource: &discovery::resource(Kind::Gateway, "v1"),
        uid: "u1",
    };
    full(&name, value, parent, US)
}

fn object(metadata: &Value) -> Raw {
    Raw::of(json!({ "metadata": metadata })).unwrap()
}

#[test]
fn what_we_make_is_ours_and_as_wanted() {
    let full = applied(&json!({"spec": {"type": "ClusterIP"}}));
    let raw = Raw::of(full.value.clone()).unwrap();
    assert_eq!(whose(&raw, Some((&owner(), "u1")), US), Whose::Ours);
    assert_eq!(whose(&raw, None, US), Whose::Ours);
    assert!(is_as_wanted(&raw.value, &full));
}

#[test]
fn a_field_that_is_no_longer_wanted_makes_a_difference() {
    let before = applied(&json!({"spec": {"type": "ClusterIP", "externalTrafficPolicy": "Local"}}));
    let after = applied(&json!({"spec": {"type": "ClusterIP"}}));
    assert_ne!(before.hash, after.hash);
    assert!(!is_as_wanted(&before.value, &after), "the hash in the annotation tells");
}

#[test]
fn another_installation_keeps_its_objects() {
    let raw = Raw::of(applied(&json!({})).value).unwrap();
    let theirs = whose(&raw, None, "example.com/them");
    assert!(matches!(theirs, Whose::Foreign(_)), "{theirs:?}");
}

#[test]
fn what_belongs_to_our_parent_is_adopted_and_nothing_else_is() {
    let of = |kind: &str, name: &str, uid: &str| {
        object(&json!({"name": "edge-entry", "ownerReferences": [
            {"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "name": name, "uid": uid, "controller": true}
        ]}))
    };
    let owner = owner();
    let judge = |raw: &Raw| whose(raw, Some((&owner, "u1")), US);
    assert_eq!(judge(&of("Gateway", "edge", "u1")), Whose::Adoptable);
    assert!(
        matches!(judge(&of("Gateway", "edge", "u0")), Whose::Foreign(_)),
        "an earlier Gateway of that name"
    );
    assert!(matches!(judge(&of("Gateway", "other", "u2")), Whose::Foreign(_)));
    assert!(matches!(
        judge(&object(&json!({"name": "edge-entry"}))),
        Whose::Foreign(_)
    ));
}
