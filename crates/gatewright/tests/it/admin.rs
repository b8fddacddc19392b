//! The admin API: who may ask, what can be changed, and what never shows.

use crate::{
    process::{Process, free_port, wait_for},
    web::{get, request},
    yaml::{FOLDER, folder, gateway},
};

fn serve() -> (tempfile::TempDir, Process) {
    let parent = folder(&[("gateway.yaml", &gateway(free_port()))]);
    let process = Process::serve(parent.path(), FOLDER);
    (parent, process)
}

#[test]
fn a_request_under_a_foreign_name_is_refused() {
    let (_parent, process) = serve();
    let admin = process.admin();
    for host in ["evil.example", "127.0.0.1.nip.io", ""] {
        let response = request(admin, "GET /status", host, "");
        assert_eq!(response.status, 421, "{host}: {response:?}");
        assert!(!response.body.contains("edge"), "{response:?}");
    }
    for host in ["localhost", "127.0.0.1", "[::1]:9870"] {
        assert_eq!(request(admin, "GET /status", host, "").status, 200, "{host}");
    }
}

#[test]
fn no_answer_lets_another_origin_read_it() {
    let (_parent, process) = serve();
    let head = get(process.admin(), "/status").head;
    assert!(!head.contains("access-control"), "{head}");
    let preflight = request(process.admin(), "OPTIONS /log-level", "localhost", "");
    assert_eq!(preflight.status, 405, "{preflight:?}");
}

#[test]
fn level_and_format_of_the_log_change_while_running() {
    let (parent, process) = serve();
    let admin = process.admin();
    let change = |body: &str| request(admin, "PUT /log-level", "localhost", body);
    assert_eq!(get(admin, "/log-level").body, r#"{"level":"info","format":"json"}"#);
    assert_eq!(change(r#"{"level":"gatewright=debug,info"}"#).status, 200);
    crate::yaml::save(parent.path(), "gateway.yaml", &gateway(free_port()));
    process.logged("planned");
    let changed = change(r#"{"format":"text","level":"info"}"#);
    assert_eq!(changed.body, r#"{"level":"info","format":"text"}"#);
    crate::yaml::save(parent.path(), "gateway.yaml", &gateway(free_port()));
    wait_for("a line of text", || {
        process
            .stderr()
            .contains("Z  INFO files changed changes=1\n")
            .then_some(())
    });
    for wrong in ["", "{", r#"{"level":"gatewright=loud"}"#, r#"{"colour":"red"}"#] {
        let response = change(wrong);
        assert_eq!(response.status, 400, "{wrong}: {response:?}");
        assert!(response.body.contains("\"hint\""), "{response:?}");
    }
    assert_eq!(get(admin, "/log-level").body, r#"{"level":"info","format":"text"}"#);
}

#[test]
fn no_secret_shows_in_status_metrics_or_log() {
    let quickstart = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/quickstart");
    let certificate = std::fs::read_to_string(quickstart.join("4-certificate.yaml")).unwrap();
    let https = gateway(free_port()).replace(
        "protocol: HTTP",
        "protocol: HTTPS\n    tls:\n      certificateRefs:\n      - name: demo-certificate",
    );
    // A broken Secret beside the good one, so that there is a problem to report.
    let broken = certificate
        .replace("name: demo-certificate", "name: broken")
        .replace("stringData", "stringdata");
    let parent = folder(&[
        ("gateway.yaml", &https),
        ("good.yaml", &certificate),
        ("broken.yaml", &broken),
    ]);
    let process = Process::serve_unready(parent.path(), FOLDER);
    process.logged("listening");
    process.logged("warning[GW1001]");
    let shown = get(process.admin(), "/status").body + &get(process.probes(), "/metrics").body + &process.stderr();
    assert!(shown.contains("broken"), "{shown}");
    let secrets = certificate
        .lines()
        .map(str::trim)
        .filter(|line| line.len() > 40 && !line.contains(' '));
    for secret in secrets {
        assert!(!shown.contains(secret), "{secret}");
    }
}
