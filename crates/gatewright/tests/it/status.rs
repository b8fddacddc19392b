//! `gatewright status` of a running process, whole outputs with ports and times left out.

use std::path::Path;

use crate::{
    process::{Process, free_port, whole},
    yaml::{FOLDER, folder, gateway, route, save, service},
};

struct Shown {
    parent: tempfile::TempDir,
    process: Process,
    port: u16,
}

/// A Gateway with two listeners, of which one cannot be served, a good route and one without its backend.
fn serve() -> Shown {
    let port = free_port();
    let listeners = gateway(port)
        + "  - name: https\n    protocol: HTTPS\n    port: 8443\n    tls:\n      certificateRefs:\n      - name: missing\n";
    let all = listeners + &service("blue", 9081) + &route("all", "blue") + &route("lost", "nowhere");
    let named = "  hostnames:\n  - shop.example.com\n  - \"*.example.org\"\n  rules:";
    let parent = folder(&[("all.yaml", &all.replacen("  rules:", named, 1))]);
    let process = Process::serve(parent.path(), FOLDER);
    Shown { parent, process, port }
}

impl Shown {
    fn status(&self, arguments: &[&str]) -> String {
        let admin = self.process.admin().to_string();
        let arguments: Vec<&str> = ["status", "--admin", &admin].iter().chain(arguments).copied().collect();
        whole(Path::new("."), &arguments).replace(&self.port.to_string(), "PORT.")
    }
}

/// Times are not known beforehand.
fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "[time]");
    settings.set_snapshot_path("snapshots");
    settings
}

#[test]
fn the_table_shows_what_is_served_and_what_is_wrong() {
    let shown = serve();
    settings().bind(|| insta::assert_snapshot!(shown.status(&[])));
}

#[test]
fn listener_sets_routes_of_connections_and_policies_have_tables_of_their_own() {
    let ports = [free_port(), free_port(), free_port(), free_port()];
    let [web, tcp, udp, more] = ports;
    let extra = format!(
        "  - {{name: tcp, protocol: TCP, port: {tcp}}}
  - {{name: udp, protocol: UDP, port: {udp}}}
  allowedListeners: {{namespaces: {{from: Same}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {{name: more}}
spec:
  parentRef: {{name: edge}}
  listeners:
  - {{name: through, protocol: TLS, port: {more}, hostname: \"*.example.com\", tls: {{mode: Passthrough}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {{name: stray}}
spec:
  parentRef: {{name: nobody}}
  listeners:
  - {{name: web, protocol: HTTP, port: 80}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {{name: mail}}
spec:
  hostnames: [mail.example.com]
  parentRefs: [{{kind: ListenerSet, name: more, sectionName: through}}]
  rules: [{{backendRefs: [{{name: blue, port: 80}}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {{name: database}}
spec:
  parentRefs: [{{name: edge, sectionName: tcp}}]
  rules: [{{backendRefs: [{{name: blue, port: 80}}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {{name: names}}
spec:
  parentRefs: [{{name: edge, sectionName: tcp}}]
  rules: [{{backendRefs: [{{name: blue, port: 80}}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {{name: private}}
spec:
  targetRefs: [{{group: \"\", kind: Service, name: blue}}]
  validation: {{hostname: blue.example.com, caCertificateRefs: [{{group: \"\", kind: ConfigMap, name: absent}}]}}
"
    );
    let all = gateway(web) + &extra + &service("blue", 9081) + &route("all", "blue");
    let parent = folder(&[("all.yaml", &all)]);
    let process = Process::serve(parent.path(), FOLDER);
    let status = |object: &str| {
        let admin = process.admin().to_string();
        let mut arguments = vec!["status", "--admin", &admin];
        arguments.extend(Some(object).filter(|object| !object.is_empty()));
        let shown = whole(Path::new("."), &arguments);
        ports
            .iter()
            .fold(shown, |shown, port| shown.replace(&port.to_string(), "PORT."))
    };
    let outputs = ["", "lset/more", "tcproutes", "btlspolicy"].map(status);
    settings().bind(|| insta::assert_snapshot!(outputs.join("\n")));
}

#[test]
fn one_kind_or_one_object_can_be_chosen() {
    let shown = serve();
    let outputs = [
        shown.status(&["httproutes"]),
        shown.status(&["gw/edge"]),
        shown.status(&["gateway", "-n", "elsewhere"]),
        shown.status(&["route/no-such-route"]),
    ];
    settings().bind(|| insta::assert_snapshot!(outputs.join("\n")));
}

#[test]
fn json_is_a_list_of_objects_as_in_kubernetes() {
    let shown = serve();
    settings().bind(|| insta::assert_snapshot!(shown.status(&["-o", "json"])));
}

#[test]
fn yaml_is_the_same_list() {
    let shown = serve();
    settings().bind(|| insta::assert_snapshot!(shown.status(&["httproute/all", "-o", "yaml"])));
}

#[test]
fn problems_of_files_are_shown_too() {
    let shown = serve();
    save(
        shown.parent.path(),
        "bad.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: x\n",
    );
    shown.process.logged("error[GW1101]");
    crate::process::wait_for("problem", || shown.status(&[]).contains("GW1101").then_some(()));
    let outputs = [shown.status(&[]), shown.status(&["gatewayclass", "-o", "yaml"])];
    settings().bind(|| insta::assert_snapshot!(outputs.join("\n")));
}
