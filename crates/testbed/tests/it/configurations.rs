//! What the proxies of the comparison are told.

use std::net::SocketAddrV4;

use gatewright_api::{Kind, Object, validate};
use gatewright_plan::{PlanSettings, Planner};
use gatewright_testbed::{
    certificates::{Authority, KeyKind},
    peers::{HOST, Streams, envoy, gatewright, haproxy, nginx},
    worlds::{self, PathKind},
};
use gatewright_world::World;
use serde_json::Value;

fn addresses() -> (SocketAddrV4, SocketAddrV4) {
    ("127.0.0.1:8080".parse().unwrap(), "127.0.0.1:9000".parse().unwrap())
}

/// Every directive that makes the comparison a fair one.
#[test]
fn nginx_has_one_worker_keeps_connections_and_writes_no_log() {
    let (address, backend) = addresses();
    let text = nginx::Proxy { address, backend }.to_string();
    let directives: Vec<&str> = text.lines().map(str::trim).collect();
    for expected in [
        "worker_processes 1;",
        "master_process off;",
        "access_log off;",
        "listen 127.0.0.1:8080;",
        "server_name bench.example.com;",
        "server 127.0.0.1:9000;",
        "keepalive 256;",
        "proxy_http_version 1.1;",
        "proxy_set_header Connection \"\";",
        "proxy_set_header X-Forwarded-For $remote_addr;",
    ] {
        assert!(directives.contains(&expected), "{expected} is missing:\n{text}");
    }
    assert_eq!(text.matches('{').count(), text.matches('}').count(), "{text}");
    // A variable of nginx's must not have been taken for one of Rust's.
    assert!(text.contains("$http_host"), "{text}");
}

#[test]
fn the_backend_answers_two_hundred_bytes() {
    assert_eq!(nginx::BODY.len(), 200);
    let text = nginx::Backend { address: addresses().1 }.to_string();
    assert!(text.contains(&format!("return 200 \"{}\";", nginx::BODY)), "{text}");
    assert_eq!(text.matches('{').count(), text.matches('}').count(), "{text}");
}

#[test]
fn haproxy_has_one_thread_and_shares_connections() {
    let (address, backend) = addresses();
    let text = haproxy::Proxy { address, backend }.to_string();
    let directives: Vec<&str> = text.lines().map(str::trim).collect();
    for expected in [
        "nbthread 1",
        "http-reuse always",
        "bind 127.0.0.1:8080",
        "server one 127.0.0.1:9000",
        "use_backend back if { hdr(host) -i bench.example.com } { path_beg / }",
    ] {
        assert!(directives.contains(&expected), "{expected} is missing:\n{text}");
    }
    assert!(!text.contains("\n    log "), "{text}");
}

#[test]
fn envoy_routes_by_host_and_makes_no_request_ids() {
    let (address, backend) = addresses();
    let text = envoy::Proxy { address, backend }.render().unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let at = |pointer: &str| {
        value
            .pointer(pointer)
            .unwrap_or_else(|| panic!("{pointer} is missing:\n{text}"))
    };
    let manager = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
    assert_eq!(at(&format!("{manager}/generate_request_id")), false);
    assert_eq!(
        at(&format!("{manager}/route_config/virtual_hosts/0/domains/0")),
        "bench.example.com"
    );
    assert_eq!(
        at("/static_resources/listeners/0/address/socket_address/port_value"),
        8080
    );
    let endpoint = "/static_resources/clusters/0/load_assignment/endpoints/0/lb_endpoints/0/endpoint";
    assert_eq!(at(&format!("{endpoint}/address/socket_address/port_value")), 9000);
    assert!(value.pointer(&format!("{manager}/access_log")).is_none());
}

fn streams() -> Streams {
    Streams {
        bulk: "127.0.0.1:9001".parse().unwrap(),
        line: "127.0.0.1:9002".parse().unwrap(),
    }
}

#[test]
fn haproxy_passes_connections_on_without_copying_and_by_the_same_rules() {
    let (address, line) = addresses();
    let backend = streams();
    let bulk = address;
    let tcp = haproxy::Tcp { bulk, line, backend }.to_string();
    let passthrough = haproxy::Passthrough { address, backend }.to_string();
    for (text, own) in [
        (&tcp, ["bind 127.0.0.1:9000", "default_backend line"]),
        (
            &passthrough,
            [
                "tcp-request content accept if { req.ssl_hello_type 1 }",
                "use_backend bulk if { req.ssl_sni -i bulk.bench.example.com }",
            ],
        ),
    ] {
        let directives: Vec<&str> = text.lines().map(str::trim).collect();
        for expected in [
            "nbthread 1",
            "mode tcp",
            "option splice-request",
            "option splice-response",
            "server one 127.0.0.1:9001",
        ]
        .iter()
        .chain(&own)
        {
            assert!(directives.contains(expected), "{expected} is missing:\n{text}");
        }
    }
}

#[test]
fn nginx_ends_tls_with_the_files_it_is_given() {
    let (address, backend) = addresses();
    let text = nginx::Terminating {
        address,
        backend,
        certificate: "/c.pem".into(),
        key: "/k.pem".into(),
    }
    .to_string();
    let directives: Vec<&str> = text.lines().map(str::trim).collect();
    for expected in [
        "worker_processes 1;",
        "listen 127.0.0.1:8080 ssl;",
        "ssl_certificate /c.pem;",
        "ssl_certificate_key /k.pem;",
        "proxy_max_temp_file_size 0;",
        "keepalive 256;",
    ] {
        assert!(directives.contains(&expected), "{expected} is missing:\n{text}");
    }
    assert_eq!(text.matches('{').count(), text.matches('}').count(), "{text}");
}

#[test]
fn the_folders_that_connections_are_measured_with_are_valid() {
    let (address, backend) = addresses();
    let identity = Authority::make().unwrap().issue(HOST, KeyKind::Ecdsa, 1).unwrap();
    for list in [
        gatewright::connections::tcp(address, backend, streams()),
        gatewright::connections::passthrough(address, streams()),
        gatewright::connections::terminating(address, backend, &identity),
    ] {
        for value in list["items"].as_array().unwrap() {
            let (group, kind) = (
                value["apiVersion"]
                    .as_str()
                    .unwrap()
                    .rsplit_once('/')
                    .map_or("", |(group, _)| group),
                value["kind"].as_str().unwrap(),
            );
            let kind = *Kind::ALL
                .iter()
                .find(|known| known.as_str() == kind && known.group() == group)
                .unwrap_or_else(|| panic!("{group}/{kind} is not read"));
            let findings = validate::validate(kind, value);
            assert!(findings.is_empty(), "{value}: {findings:?}");
        }
    }
}

fn assert_valid(objects: &[Object]) {
    let list: Value = serde_json::from_str(&worlds::list(objects).unwrap()).unwrap();
    for (object, value) in objects.iter().zip(list["items"].as_array().unwrap()) {
        let findings = validate::validate(object.kind(), value);
        assert!(findings.is_empty(), "{}: {findings:?}", object.name());
    }
}

#[test]
fn the_folder_that_we_are_measured_with_is_valid_and_planned() {
    let (address, backend) = addresses();
    let objects = gatewright::objects(address, backend);
    assert_valid(&objects);
    let mut world = World::default();
    for object in &objects {
        world.apply(object);
    }
    let changes = world.take_changes();
    let mut planner = Planner::new(PlanSettings::default());
    planner.update(&world, &changes);
    let (_, gateway) = planner.gateways().iter().next().unwrap();
    let listener = &gateway.listeners[0];
    assert_eq!(
        (listener.port, listener.hosts.len(), gateway.clusters.len()),
        (8080, 1, 1)
    );
}

#[test]
fn worlds_of_any_size_are_valid() {
    assert_valid(&worlds::frame(80));
    for layout in [worlds::Layout::OwnHosts, worlds::Layout::OneHost] {
        for index in [0, 99, 100, 99_999] {
            assert_valid(&worlds::application(layout, index, index));
        }
    }
    for kind in [PathKind::Exact, PathKind::Prefix] {
        assert_valid(&worlds::paths(kind, "shop.example.com", 150, addresses().1));
    }
}
