//! Folders of objects for the tests.

use std::{fs, path::Path};

use tempfile::TempDir;

/// The name of the folder inside its temporary parent, so that paths in outputs are short and stable.
pub(crate) const FOLDER: &str = "folder";

/// A folder with these files.
pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let parent = tempfile::tempdir().unwrap();
    fs::create_dir(parent.path().join(FOLDER)).unwrap();
    for (name, text) in files {
        save(parent.path(), name, text);
    }
    parent
}

/// Saves a file of the folder.
pub(crate) fn save(parent: &Path, name: &str, text: &str) {
    fs::write(parent.join(FOLDER).join(name), text).unwrap();
}

/// A class of ours and a Gateway `edge` with one plain listener.
pub(crate) fn gateway(port: u16) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata:
  name: gatewright
spec:
  controllerName: gatewright.dev/gateway-controller
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: edge
spec:
  gatewayClassName: gatewright
  listeners:
  - name: http
    protocol: HTTP
    port: {port}
"
    )
}

/// A Service with one endpoint on this host.
pub(crate) fn service(name: &str, port: u16) -> String {
    service_of(name, &[port])
}

/// A Service with endpoints on these ports of this host.
pub(crate) fn service_of(name: &str, ports: &[u16]) -> String {
    let service =
        format!("---\napiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\nspec:\n  ports:\n  - port: 80\n");
    let slices = ports.iter().map(|port| slice(name, *port));
    service + &slices.collect::<String>()
}

/// An endpoint of a Service on this host.
fn slice(service: &str, port: u16) -> String {
    format!(
        "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: {service}-{port}
  labels:
    kubernetes.io/service-name: {service}
addressType: IPv4
ports:
- port: {port}
endpoints:
- addresses: [127.0.0.1]
"
    )
}

/// A route from everything at `edge` to a Service.
pub(crate) fn route(name: &str, service: &str) -> String {
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: {name}
spec:
  parentRefs:
  - name: edge
  rules:
  - backendRefs:
    - name: {service}
      port: 80
"
    )
}

/// A route of a kind from everything at `edge`, with its rules.
pub(crate) fn route_with(kind: &str, name: &str, rules: &str) -> String {
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: {kind}
metadata:
  name: {name}
spec:
  parentRefs:
  - name: edge
  rules:
{rules}"
    )
}
