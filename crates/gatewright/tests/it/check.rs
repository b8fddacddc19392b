//! `gatewright check`, whole outputs.

use std::path::{Path, PathBuf};

use crate::{
    process::whole,
    yaml::{FOLDER, folder, gateway, route, service},
};

fn check(files: &[(&str, &str)], flags: &[&str]) -> String {
    let parent = folder(files);
    let arguments: Vec<&str> = ["check", FOLDER].iter().chain(flags).copied().collect();
    whole(parent.path(), &arguments)
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

#[test]
fn every_example_is_fine() {
    let mut names: Vec<String> = std::fs::read_dir(examples())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        // Those are checked beside what is installed in a cluster.
        .filter(|name| !name.starts_with("cluster-"))
        .collect();
    names.sort();
    assert!(names.len() >= 3, "{names:?}");
    let outputs = names
        .iter()
        .map(|name| format!("===== {name}\n{}", whole(&examples(), &["check", name, "--strict"])));
    insta::assert_snapshot!(outputs.collect::<String>());
}

/// A Gateway, a Service and a route between them.
fn good() -> String {
    gateway(8080) + &service("blue", 9081) + &route("all", "blue")
}

#[test]
fn problems_of_files_have_place_code_and_hint() {
    let syntax = "apiVersion: v1\nkind: Service\nmetadata:\n\tname: tab\n";
    let invalid = gateway(80_80)
        .replace("port: 8080", "port: 80800")
        .replace("name: edge", "name: Edge");
    let unknown = route("more", "blue").replace("parentRefs:", "parentRef: x\n  parentRefs:");
    let version = "apiVersion: gateway.networking.k8s.io/v1alpha2\nkind: Gateway\nmetadata:\n  name: old\n";
    let other = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: passed-over\n";
    let (good, twice) = (good(), route("all", "blue"));
    let files = [
        ("1-good.yaml", good.as_str()),
        ("2-syntax.yaml", syntax),
        ("3-invalid.yaml", &invalid),
        ("4-unknown.yaml", &unknown),
        ("5-twice.yaml", &twice),
        ("6-version.yaml", version),
        ("7-other.yaml", other),
    ];
    insta::assert_snapshot!(check(&files, &[]));
}

#[test]
fn a_secret_shows_nothing_of_what_it_holds() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: keys\ndata:\n  tls.key: hunter2-is-not-base64!\n";
    let output = check(&[("good.yaml", &good()), ("secret.yaml", secret)], &[]);
    assert!(!output.contains("hunter2"), "{output}");
    insta::assert_snapshot!(output);
}

/// References that lead nowhere, and listeners that cannot be.
const BROKEN: &str = "---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: classless
spec:
  gatewayClassName: nobody
  listeners:
  - name: http
    protocol: HTTP
    port: 8081
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: broken
spec:
  gatewayClassName: gatewright
  listeners:
  - name: https
    protocol: HTTPS
    port: 8443
    tls:
      certificateRefs:
      - name: missing
  - name: tcp
    protocol: example.com/other
    port: 9000
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: lost
spec:
  parentRefs:
  - name: nowhere
  - name: edge
    sectionName: no-such-listener
  rules:
  - backendRefs:
    - name: blue
      port: 80
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: backless
spec:
  parentRefs:
  - name: edge
  rules:
  - backendRefs:
    - name: missing
      port: 80
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: intruder
  namespace: other
spec:
  parentRefs:
  - name: edge
    namespace: default
  rules:
  - backendRefs:
    - name: blue
      namespace: default
      port: 80
";

#[test]
fn references_that_lead_nowhere_are_found_with_their_objects() {
    insta::assert_snapshot!(check(&[("broken.yaml", BROKEN), ("good.yaml", &good())], &[]));
}

#[test]
fn the_same_findings_come_as_json() {
    insta::assert_snapshot!(check(
        &[("broken.yaml", BROKEN), ("good.yaml", &good())],
        &["-o", "json"]
    ));
}

/// A Service without endpoints, a class of another controller, a route without parents.
fn questionable() -> String {
    let service = "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: idle\nspec:\n  ports:\n  - port: 80\n";
    let class = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata:\n  name: other\nspec:\n  controllerName: example.com/other\n";
    let orphan = route("orphan", "idle").replace("  parentRefs:\n  - name: edge\n", "");
    gateway(8080) + service + class + &route("all", "idle") + &orphan
}

#[test]
fn warnings_alone_do_not_fail() {
    insta::assert_snapshot!(check(&[("all.yaml", &questionable())], &[]));
}

#[test]
fn warnings_fail_when_strict() {
    let output = check(&[("all.yaml", &questionable())], &["--strict"]);
    assert!(output.starts_with("exit code: 1\n"), "{output}");
}

#[test]
fn an_empty_folder_is_fine_and_serves_nothing() {
    insta::assert_snapshot!(check(&[], &[]));
}
