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
    format!(
        "---
apiVersion: v1
kind: Service
metadata:
  name: {name}
spec:
  ports:
  - port: 80
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: {name}
  labels:
    kubernetes.io/service-name: {name}
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
