//! A process that serves a Gateway `edge` and what a test puts beside it.

use std::net::SocketAddr;

use serde_json::Value;

use crate::{
    process::{Process, free_port, wait_for},
    web::{Response, ask, get},
    yaml::{FOLDER, folder, gateway, save},
};

/// A process with one Gateway.
pub(crate) struct Served {
    pub(crate) parent: tempfile::TempDir,
    process: Process,
    pub(crate) traffic: SocketAddr,
}

impl Served {
    /// Serves `edge` and these objects, which are in `objects.yaml`.
    pub(crate) fn start(objects: &str) -> Self {
        let port = free_port();
        let parent = folder(&[("gateway.yaml", &gateway(port)), ("objects.yaml", objects)]);
        let process = Process::serve(parent.path(), FOLDER);
        Self {
            parent,
            process,
            traffic: SocketAddr::from(([127, 0, 0, 1], port)),
        }
    }

    /// Replaces all objects beside the Gateway and its class.
    pub(crate) fn save(&self, objects: &str) {
        save(self.parent.path(), "objects.yaml", objects);
    }

    /// Asks for a path, with headers beside the host.
    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        self.send(&format!("GET {path}"), headers, "")
    }

    /// Sends a request to the host `a.test`.
    pub(crate) fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let headers: Vec<_> = [("host", "a.test")].iter().chain(headers).copied().collect();
        ask(self.traffic, line, &headers, body)
    }

    /// An object as `gatewright status` shows it.
    pub(crate) fn object(&self, kind: &str, name: &str) -> Value {
        let document: Value = serde_json::from_str(&get(self.process.admin(), "/status").body).unwrap();
        let mut objects = document["objects"].as_array().into_iter().flatten();
        let found = objects.find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.cloned().unwrap_or_default()
    }

    /// Waits until the first parent of a route has a condition with this status, and returns it.
    pub(crate) fn until_condition(&self, kind: &str, name: &str, condition: &str, status: &str) -> Value {
        wait_for(&format!("{condition} {status} of {kind} {name}"), || {
            let object = self.object(kind, name);
            let conditions = object["status"]["parents"][0]["conditions"].as_array().cloned();
            let mut conditions = conditions.into_iter().flatten();
            conditions.find(|found| found["type"] == condition && found["status"] == status)
        })
    }
}
