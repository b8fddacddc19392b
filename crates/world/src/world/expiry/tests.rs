use gatewright_api::{Kind, Object};
use gatewright_ir::Text;
use serde_json::json;

use super::*;
use crate::resolve::{Reference, Referrer};

/// The first of January 2026.
const BEGIN: i64 = 1_767_225_600;
/// The second.
const END: i64 = BEGIN + 86_400;

/// A Secret with a certificate that is valid for one day, or for so many more.
fn secret(name: &str, more_days: u8) -> Object {
    let mut made = rcgen::CertificateParams::new(vec!["a.com".to_owned()]).unwrap();
    made.not_before = rcgen::date_time_ymd(2026, 1, 1);
    made.not_after = rcgen::date_time_ymd(2026, 1, 2 + more_days);
    let key = rcgen::KeyPair::generate().unwrap();
    let data = json!({"tls.crt": made.self_signed(&key).unwrap().pem(), "tls.key": key.serialize_pem()});
    let value = json!({"metadata": {"namespace": "a", "name": name}, "stringData": data});
    Object::from_value(Kind::Secret, value).unwrap()
}

fn world() -> World {
    let mut world = World::default();
    world.apply(&secret("s", 0));
    world.take_changes();
    world
}

fn validity(world: &World, name: &str) -> Validity {
    let (own, name) = (Text::from("a"), Text::from(name));
    let to = Reference {
        group: "",
        kind: "Secret",
        namespace: None,
        name: &name,
    };
    let granted = world.resolve::<Secret>(Referrer::Namespaced(Kind::Gateway, &own), to);
    world.validity(&granted.unwrap())
}

/// Whether the Secret is among what changed; nothing else is.
fn is_changed(world: &mut World) -> bool {
    let changes = world.take_changes();
    let is_changed = changes.secrets.contains(&Key::new("a", "s"));
    assert_eq!(changes.is_empty(), !is_changed);
    is_changed
}

#[test]
fn where_nobody_says_what_time_it_is_everything_is_valid() {
    assert_eq!(validity(&world(), "s"), Validity::Valid);
}

#[test]
fn a_certificate_is_valid_from_its_first_second_through_its_last() {
    let mut world = world();
    let table = [
        (BEGIN - 1, Validity::NotBefore(BEGIN)),
        (BEGIN, Validity::Valid),
        (END, Validity::Valid),
        (END + 1, Validity::NotAfter(END)),
    ];
    for (now, expected) in table {
        world.set_time(now);
        assert_eq!(validity(&world, "s"), expected, "at {now}");
    }
}

#[test]
fn time_is_a_change_only_when_it_makes_a_difference() {
    let mut world = world();
    world.set_time(BEGIN - 10);
    assert!(
        is_changed(&mut world),
        "it counted as valid before anybody knew the time"
    );
    let table = [
        (BEGIN - 1, false),
        (BEGIN - 1, false),
        (BEGIN, true),
        (BEGIN + 1, false),
        (END, false),
        (END + 1, true),
        (END + 1000, false),
    ];
    for (now, expected) in table {
        world.set_time(now);
        assert_eq!(is_changed(&mut world), expected, "at {now}");
    }
}

#[test]
fn a_clock_that_goes_back_makes_a_certificate_valid_again() {
    let mut world = world();
    world.set_time(END + 1000);
    world.take_changes();
    world.set_time(END + 1);
    assert!(!is_changed(&mut world));
    world.set_time(END);
    assert!(is_changed(&mut world));
    assert_eq!(validity(&world, "s"), Validity::Valid);
    world.set_time(BEGIN - 1);
    assert!(is_changed(&mut world));
    assert_eq!(validity(&world, "s"), Validity::NotBefore(BEGIN));
    // Over both boundaries at once: it is invalid before and after, for another reason.
    world.set_time(END + 1);
    assert!(is_changed(&mut world));
}

#[test]
fn whoever_has_the_clock_hears_when_to_say_it_again() {
    let mut world = world();
    world.apply(&secret("longer", 1));
    assert_eq!(world.set_time(BEGIN - 10), Some(BEGIN));
    assert_eq!(world.set_time(BEGIN - 1), Some(BEGIN));
    assert_eq!(world.set_time(BEGIN), Some(END + 1));
    assert_eq!(world.set_time(END + 1), Some(END + 86_401));
    assert_eq!(world.set_time(END + 86_401), None);
    assert_eq!(World::default().set_time(BEGIN), None);
}

#[test]
fn a_secret_that_is_replaced_or_gone_leaves_no_times_behind() {
    let mut world = world();
    world.set_time(BEGIN);
    world.apply(&secret("s", 1));
    assert_eq!(world.set_time(BEGIN), Some(END + 86_401));
    let broken = json!({"metadata": {"namespace": "a", "name": "s"}, "stringData": {"tls.crt": "junk"}});
    world.apply(&Object::from_value(Kind::Secret, broken).unwrap());
    assert_eq!(world.set_time(BEGIN), None);
    assert_eq!(
        validity(&world, "s"),
        Validity::Valid,
        "there is nothing that could expire"
    );
    world.apply(&secret("s", 0));
    world.delete(&secret("s", 0).name());
    assert_eq!(world.set_time(BEGIN), None);
    world.take_changes();
    world.set_time(END + 1);
    assert!(world.take_changes().is_empty());
}

#[test]
fn no_time_is_too_early_or_too_late() {
    let mut world = world();
    for now in [i64::MIN, i64::MAX, i64::MIN, BEGIN, i64::MAX, i64::MAX - 1, i64::MAX] {
        world.set_time(now);
        let expected = match now {
            i64::MIN => Validity::NotBefore(BEGIN),
            BEGIN => Validity::Valid,
            _ => Validity::NotAfter(END),
        };
        assert_eq!(validity(&world, "s"), expected, "at {now}");
    }
}
