//! A namespace of a test's own, and what a test does in it.

use std::net::{IpAddr, SocketAddr};

use serde_json::{Value, json};

use crate::{
    bed::{Bed, Refusal, eventually, holds},
    web,
};

/// The class of the installation that tests share.
pub(crate) const CLASS: &str = "gatewright";

/// The path of an object, or of all of a kind where the name is empty.
pub(crate) fn path(kind: &str, namespace: &str, name: &str) -> String {
    let (api, plural) = match kind {
        "gateway" => ("apis/gateway.networking.k8s.io/v1", "gateways"),
        "httproute" => ("apis/gateway.networking.k8s.io/v1", "httproutes"),
        "gatewayclass" => ("apis/gateway.networking.k8s.io/v1", "gatewayclasses"),
        "gatewayconfig" => ("apis/gatewright.dev/v1alpha1", "gatewayconfigs"),
        "deployment" => ("apis/apps/v1", "deployments"),
        "lease" => ("apis/coordination.k8s.io/v1", "leases"),
        "endpointslice" => ("apis/discovery.k8s.io/v1", "endpointslices"),
        "service" => ("api/v1", "services"),
        "secret" => ("api/v1", "secrets"),
        "pod" => ("api/v1", "pods"),
        "event" => ("api/v1", "events"),
        "namespace" => ("api/v1", "namespaces"),
        other => panic!("{other} has no path"),
    };
    let place = match namespace {
        "" => String::new(),
        namespace => format!("namespaces/{namespace}/"),
    };
    format!("/{api}/{place}{plural}/{name}")
        .trim_end_matches('/')
        .to_owned()
}

/// A condition of a list: status and reason.
pub(crate) fn condition(conditions: &Value, kind: &str) -> (String, String) {
    let found = conditions
        .as_array()
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == kind);
    let part = |name: &str| {
        found
            .and_then(|found| found[name].as_str())
            .unwrap_or_default()
            .to_owned()
    };
    (part("status"), part("reason"))
}

/// The message of a condition.
pub(crate) fn message(conditions: &Value, kind: &str) -> String {
    let mut all = conditions.as_array().into_iter().flatten();
    let found = all.find(|condition| condition["type"] == kind);
    found
        .and_then(|found| found["message"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// A condition of the first parent of a route.
pub(crate) fn of_parent(route: &Value, kind: &str) -> (String, String) {
    condition(&route["status"]["parents"][0]["conditions"], kind)
}

/// A namespace.
pub(crate) struct Namespace<'a> {
    pub(crate) bed: &'a Bed,
    pub(crate) name: String,
}

impl<'a> Namespace<'a> {
    pub(crate) fn make(bed: &'a Bed, name: &str) -> Self {
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        bed.create("/api/v1/namespaces", &object).unwrap();
        let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        eventually("the default ServiceAccount", || {
            bed.get(&account).map_err(|error| error.message)
        });
        Self {
            bed,
            name: name.to_owned(),
        }
    }

    /// Applies manifests, as a user does.
    pub(crate) fn apply(&self, manifests: &str) {
        let objects = documents(manifests).into_iter().map(|mut object| {
            object["metadata"]["namespace"] = json!(self.name);
            object
        });
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects.collect::<Vec<_>>() });
        self.bed.apply(&list.to_string()).unwrap();
    }

    pub(crate) fn path(&self, kind: &str, name: &str) -> String {
        path(kind, &self.name, name)
    }

    pub(crate) fn create(&self, kind: &str, object: &Value) {
        self.bed.create(&self.path(kind, ""), object).unwrap();
    }

    pub(crate) fn get(&self, kind: &str, name: &str) -> Result<Value, Refusal> {
        self.bed.get(&self.path(kind, name))
    }

    pub(crate) fn list(&self, kind: &str) -> Vec<Value> {
        self.bed.list(&self.path(kind, ""))
    }

    pub(crate) fn delete(&self, kind: &str, name: &str) {
        self.bed.delete(&self.path(kind, name)).unwrap();
    }

    pub(crate) fn patch(&self, kind: &str, name: &str, patch: &Value) {
        self.bed.patch(&self.path(kind, name), patch).unwrap();
    }

    /// Waits until an object is as it should be.
    pub(crate) fn until(&self, kind: &str, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("{kind} {name}: {what}"), || {
            let object = self.get(kind, name).map_err(|error| error.message)?;
            holds(is_so(&object), format!("{} {}", object["spec"], object["status"])).map(|()| object)
        })
    }

    /// Waits until an object is gone.
    pub(crate) fn until_gone(&self, kind: &str, name: &str) {
        eventually(&format!("the end of {kind} {name}"), || match self.get(kind, name) {
            Err(refusal) if refusal.code == 404 => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }

    /// Waits until a Gateway has a condition, with a reason.
    pub(crate) fn until_gateway(&self, name: &str, kind: &str, expected: (&str, &str)) -> Value {
        self.until("gateway", name, &format!("{kind} {expected:?}"), |gateway| {
            let (status, reason) = condition(&gateway["status"]["conditions"], kind);
            (status.as_str(), reason.as_str()) == expected
        })
    }

    /// Waits until a route has a condition, with a reason.
    pub(crate) fn until_route(&self, name: &str, kind: &str, expected: (&str, &str)) -> Value {
        self.until("httproute", name, &format!("{kind} {expected:?}"), |route| {
            let (status, reason) = of_parent(route, kind);
            (status.as_str(), reason.as_str()) == expected
        })
    }

    /// Waits until a Gateway is Programmed, and returns its address.
    pub(crate) fn programmed(&self, name: &str) -> IpAddr {
        let gateway = self.until_gateway(name, "Programmed", ("True", "Programmed"));
        let address = gateway["status"]["addresses"][0]["value"].as_str().unwrap();
        address.parse().unwrap()
    }

    /// A Gateway with one listener for HTTP on port 80.
    pub(crate) fn gateway(&self, name: &str, class: &str) {
        self.create("gateway", &plain_gateway(name, class));
    }

    /// A route of everything to one backend.
    pub(crate) fn route(&self, name: &str, gateway: &str, backend: &str) {
        self.create("httproute", &plain_route(name, gateway, backend));
    }

    /// An echo backend: a Deployment and its Service, ready.
    pub(crate) fn backend(&self, name: &str) {
        self.apply(&backend(name));
        self.until("deployment", name, "a ready replica", |deployment| {
            deployment["status"]["readyReplicas"] == 1
        });
    }

    /// A Gateway, a route and a backend of one name, which answer.
    pub(crate) fn served(&self, name: &str, class: &str) -> SocketAddr {
        self.gateway(name, class);
        self.route(name, name, name);
        self.backend(name);
        let address = SocketAddr::new(self.programmed(name), 80);
        until_status(address, "/", 200);
        address
    }
}

/// Waits until a path is answered with a status.
pub(crate) fn until_status(address: SocketAddr, path: &str, status: u16) -> web::Response {
    eventually(&format!("{status} for {path} of {address}"), || {
        let response = web::get(address, path)?;
        holds(response.status == status, format!("{response:?}")).map(|()| response)
    })
}

pub(crate) fn plain_gateway(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": { "name": name },
        "spec": { "gatewayClassName": class, "listeners": [{ "name": "http", "protocol": "HTTP", "port": 80 }] },
    })
}

pub(crate) fn plain_route(name: &str, gateway: &str, backend: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": { "name": name },
        "spec": {
            "parentRefs": [{ "name": gateway }],
            "rules": [{ "backendRefs": [{ "name": backend, "port": 80 }] }],
        },
    })
}

/// The manifests of an echo backend.
pub(crate) fn backend(name: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: {name} }}
spec:
  selector: {{ matchLabels: {{ app: {name} }} }}
  template:
    metadata: {{ labels: {{ app: {name} }} }}
    spec:
      automountServiceAccountToken: false
      containers:
      - name: echo
        image: echo-basic
        env:
        - {{ name: SERVICE_NAME, value: {name} }}
        - {{ name: POD_NAME, valueFrom: {{ fieldRef: {{ fieldPath: metadata.name }} }} }}
        readinessProbe: {{ httpGet: {{ path: /, port: 3000 }}, periodSeconds: 1 }}
---
apiVersion: v1
kind: Service
metadata: {{ name: {name} }}
spec: {{ selector: {{ app: {name} }}, ports: [{{ port: 80, targetPort: 3000 }}] }}
"
    )
}

/// The documents of a stream of YAML.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let is_content = |document: &&str| document.lines().any(|line| !line.is_empty() && !line.starts_with('#'));
    text.split("\n---")
        .filter(is_content)
        .map(|part| {
            let part = part.strip_prefix("---").unwrap_or(part);
            serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{error}\n{part}"))
        })
        .collect()
}
