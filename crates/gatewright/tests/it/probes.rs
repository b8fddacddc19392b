//! Health, readiness and metrics.

use std::net::{SocketAddr, TcpListener};

use crate::{
    process::{Process, free_port, wait_for},
    web::{Backends, get},
    yaml::{FOLDER, folder, gateway, route, service},
};

#[test]
fn a_process_whose_ports_are_taken_is_alive_but_not_ready_until_they_are_free() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let parent = folder(&[("gateway.yaml", &gateway(port))]);
    let process = Process::serve_unready(parent.path(), FOLDER);
    let probes = process.probes();
    wait_for("reason", || {
        let response = get(probes, "/readyz");
        let reason = "starting: none of the listeners could be opened\n";
        (response.status == 503 && response.body == reason).then_some(())
    });
    assert_eq!(get(probes, "/healthz").status, 200);
    process.logged("cannot listen");
    drop(taken);
    wait_for("readiness", || (get(probes, "/readyz").status == 200).then_some(()));
    process.logged("listening");
}

#[test]
fn a_folder_with_nothing_to_serve_is_ready() {
    let parent = folder(&[]);
    let process = Process::serve(parent.path(), FOLDER);
    process.logged("no Gateway can be served");
}

#[test]
fn metrics_count_requests_by_listener_route_and_code() {
    let backends = Backends::start();
    let port = free_port();
    let only_path = route("some", "blue").replace(
        "  - backendRefs:",
        "  - matches:\n    - path:\n        value: /some\n    backendRefs:",
    );
    let all = gateway(port) + &service("blue", backends.blue) + &only_path;
    let parent = folder(&[("all.yaml", &all)]);
    let process = Process::serve(parent.path(), FOLDER);
    let traffic = SocketAddr::from(([127, 0, 0, 1], port));
    for _ in 0..3 {
        assert_eq!(get(traffic, "/some").status, 200);
    }
    assert_eq!(get(traffic, "/other").status, 404);
    let probes = process.probes();
    let listener = r#"gateway="default/edge",listener="http""#;
    let wanted = [
        format!(r#"gatewright_requests_total{{{listener},route="HTTPRoute/default/some",code="200"}} 3"#),
        format!(r#"gatewright_requests_total{{{listener},route="",code="404"}} 1"#),
        format!("gatewright_request_duration_seconds_count{{{listener}}} 4"),
        r#"gatewright_objects{kind="HTTPRoute"} 1"#.to_owned(),
        "gatewright_ready 1".to_owned(),
        format!(r#"gatewright_build_info{{version="{}"}} 1"#, env!("CARGO_PKG_VERSION")),
    ];
    for line in wanted {
        // A request is counted when its last byte has gone out, which is after the client has it.
        wait_for(&line, || {
            get(probes, "/metrics")
                .body
                .lines()
                .any(|found| found == line)
                .then_some(())
        });
    }
    let head = get(probes, "/metrics").head;
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
}

#[test]
fn probes_and_metrics_can_have_addresses_of_their_own() {
    let parent = folder(&[]);
    let (health, metrics) = (free_port(), free_port());
    let (health, metrics) = (format!("127.0.0.1:{health}"), format!("127.0.0.1:{metrics}"));
    let arguments = [
        "run",
        "--files",
        FOLDER,
        "--log-format",
        "json",
        "--admin",
        "off",
        "--health-probe-bind-address",
        &health,
        "--metrics-bind-address",
        &metrics,
    ];
    let process = Process::start(parent.path(), &arguments);
    process.logged("metrics:");
    let (health, metrics) = (health.parse().unwrap(), metrics.parse().unwrap());
    assert_eq!(
        (get(health, "/healthz").status, get(health, "/metrics").status),
        (200, 404)
    );
    assert_eq!(
        (get(metrics, "/healthz").status, get(metrics, "/metrics").status),
        (404, 200)
    );
}
