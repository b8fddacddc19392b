use std::collections::HashMap;

use gatewright_api::Kind;
use proptest::prelude::*;

use super::*;

fn is_service_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= 63
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
        && name.bytes().all(is_inner)
        && !name.ends_with('-')
}

fn is_label_value(value: &str) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    value.len() <= 63
        && is_end(value.bytes().next())
        && is_end(value.bytes().next_back())
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn is_gateway_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        is_end(label.bytes().next()) && is_end(label.bytes().next_back())
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Names that lie close to each other and to the borders: of length, of characters, and of our own forms.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    for _ in 0..4000 {
        let length = match next(4) {
            0 => 1 + next(8),
            1 => 48 + next(8),
            2 => 60 + next(8),
            _ => 1 + next(253),
        };
        let few = next(2) == 0;
        let name: String = (0..length)
            .map(|_| match next(if few { 3 } else { 12 }) {
                0 => '-',
                1 => '.',
                number => char::from(b'a' + u8::try_from(number).unwrap()),
            })
            .collect();
        names.push(name);
    }
    let mut made: Vec<String> = Vec::new();
    for name in &names {
        // What our own forms look like, taken as names of other Gateways.
        made.push(
            service_name(name)
                .trim_start_matches("gatewright")
                .trim_start_matches('-')
                .to_owned(),
        );
        made.push(gateway_label(name).replace('_', "-"));
        made.push(name.replace('.', "-"));
        made.push(format!("{name}-80-ipv4"));
        made.push(name.chars().take(52).collect());
    }
    names.extend(made);
    for length in 1..=253 {
        names.push("a".repeat(length));
        names.push(format!("{}.a", "a".repeat(length.saturating_sub(2).max(1))));
    }
    names.retain(|name| is_gateway_name(name));
    names.sort();
    names.dedup();
    names
}

#[test]
fn generated_names_are_legal_and_different_for_different_gateways() {
    let names = names();
    assert!(names.len() > 5000, "{}", names.len());
    let (mut services, mut slices, mut labels) = (HashMap::new(), HashMap::new(), HashMap::new());
    for name in &names {
        let service = service_name(name);
        assert!(is_service_name(&service), "{name} gives {service}");
        let label = gateway_label(name);
        assert!(is_label_value(&label), "{name} gives {label}");
        assert_eq!(services.insert(service, name), None, "{name}");
        assert_eq!(labels.insert(label, name), None, "{name}");
        let ports = [Port::tcp(80), Port::udp(80), Port::tcp(8080)];
        for (port, family) in ports
            .into_iter()
            .flat_map(|port| [(port, Family::V4), (port, Family::V6)])
        {
            let slice = slice_name(name, port, family);
            assert!(slice.len() <= 253);
            assert_eq!(slices.insert(slice, name), None, "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_two_gateways_have_different_names(left in "[a-c]([-a-c.]{0,251}[a-c])?", right in "[a-c]([-a-c.]{0,80}[a-c])?") {
        prop_assert!(is_service_name(&service_name(&left)), "{}", service_name(&left));
        prop_assert!(is_label_value(&gateway_label(&left)), "{}", gateway_label(&left));
        prop_assert_eq!(left == right, service_name(&left) == service_name(&right));
        prop_assert_eq!(left == right, gateway_label(&left) == gateway_label(&right));
    }
}

#[test]
fn what_fits_is_readable() {
    assert_eq!(service_name("front"), "gatewright-front");
    assert_eq!(
        service_name("shop.example.com"),
        "gatewright--wic43dejhvkaieogl43e2rycve-shop-example-com"
    );
    assert_eq!(
        slice_name("front", Port::tcp(443), Family::V6),
        "gatewright-front-443-ipv6"
    );
    assert_eq!(
        slice_name("front", Port::udp(53), Family::V4),
        "gatewright-front-udp53-ipv4"
    );
    assert_eq!(gateway_label("shop.example.com"), "shop.example.com");
}

fn owned(body: OwnedBody, kind: OwnedKind) -> Owned {
    Owned {
        name: OwnedName {
            kind,
            namespace: "a".into(),
            name: "gatewright-front".into(),
        },
        owner: ObjectName {
            kind: Kind::Gateway,
            namespace: "a".to_owned(),
            name: "front".to_owned(),
        },
        labels: [(MANAGED_BY.into(), MANAGER.into())].into(),
        annotations: BTreeMap::new(),
        body,
    }
}

#[test]
fn a_service_is_rendered_without_what_was_not_chosen() {
    let port = |port, target| EntryPort { port, target };
    let body = ServiceBody {
        kind: ServiceType::ClusterIp,
        ports: vec![port(Port::tcp(80), 20000), port(Port::udp(80), 20000)],
        external_traffic_policy: None,
        load_balancer_class: None,
        load_balancer_ip: None,
    };
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": "a", "name": "gatewright-front", "labels": {"app.kubernetes.io/managed-by": "gatewright"}},
        "spec": {
            "type": "ClusterIP",
            "ports": [
                {"name": "tcp-80", "port": 80, "targetPort": 20000, "protocol": "TCP"},
                {"name": "udp-80", "port": 80, "targetPort": 20000, "protocol": "UDP"},
            ],
        },
    });
    assert_eq!(
        owned(OwnedBody::Service(body), OwnedKind::Service).to_value(),
        Some(expected)
    );
    assert_eq!(owned(OwnedBody::Kept, OwnedKind::Service).to_value(), None);
}

#[test]
fn a_replica_that_leaves_still_serves_and_is_not_ready() {
    let endpoint = |address: &str, is_listening, is_leaving| SliceEndpoint {
        address: address.parse().unwrap(),
        node: Some("one".into()),
        is_listening,
        is_leaving,
    };
    let body = SliceBody {
        family: Family::V4,
        port: EntryPort {
            port: Port::udp(80),
            target: 20000,
        },
        endpoints: vec![
            endpoint("10.0.0.1", true, false),
            endpoint("10.0.0.2", true, true),
            endpoint("10.0.0.3", false, false),
        ],
    };
    let value = owned(OwnedBody::EndpointSlice(body), OwnedKind::EndpointSlice)
        .to_value()
        .unwrap();
    assert_eq!(value["addressType"], "IPv4");
    assert_eq!(
        value["ports"],
        json!([{"name": "udp-80", "port": 20000, "protocol": "UDP"}])
    );
    let conditions: Vec<&Value> = value["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|endpoint| &endpoint["conditions"])
        .collect();
    assert_eq!(
        conditions,
        [
            &json!({"ready": true, "serving": true, "terminating": false}),
            &json!({"ready": false, "serving": true, "terminating": true}),
            &json!({"ready": false, "serving": false, "terminating": false}),
        ]
    );
    assert_eq!(value["endpoints"][0]["nodeName"], "one");
}
