//! Installations of Gatewright: by the documentation, and others beside it under other controller names.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    bed::{Bed, eventually, holds, root},
    namespace::{documents, path},
    web,
};

/// The commands of the documentation, from an empty cluster to the first request.
pub(crate) fn commands() -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/kubernetes.md")).unwrap();
    let block = text
        .split("```sh\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let joined = block.replace("\\\n", " ");
    let commands: Vec<String> = joined.lines().map(str::to_owned).collect();
    assert_eq!(commands.len(), 3, "at most three commands, as promised: {commands:#?}");
    commands
}

/// Runs a command of the documentation with the cluster's kubectl. Returns what it printed.
pub(crate) fn shell(bed: &Bed, command: &str) -> String {
    let kubectl = bed.cluster.kubectl();
    let mut folders = vec![std::path::Path::new(kubectl.get_program()).parent().unwrap().to_owned()];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(root())
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("no_proxy", "*");
    for (name, value) in kubectl.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Does what the documentation says, up to the second command. The first, which fetches the kinds of Gateway API from the
/// Internet, the testbed has done from its own copy.
pub(crate) fn by_the_documentation(bed: &Bed) {
    let commands = commands();
    assert!(commands[0].contains("gateway-api"), "{commands:#?}");
    shell(bed, &commands[1]);
}

/// An installation: a Deployment, its rights, and its class.
pub(crate) struct Installation<'a> {
    pub(crate) bed: &'a Bed,
    /// The namespace of its replicas.
    pub(crate) namespace: String,
    /// Its class.
    pub(crate) class: String,
    pub(crate) controller: String,
}

impl<'a> Installation<'a> {
    /// The one that tests share.
    pub(crate) fn shared(bed: &'a Bed) -> Self {
        Self {
            bed,
            namespace: "gatewright-system".to_owned(),
            class: "gatewright".to_owned(),
            controller: "gatewright.dev/gateway-controller".to_owned(),
        }
    }

    /// Another one: the same manifests with other names, so many replicas and more arguments.
    pub(crate) fn make(bed: &'a Bed, name: &str, replicas: u32, arguments: &[&str]) -> Self {
        let installation = Self {
            bed,
            namespace: format!("{name}-system"),
            class: name.to_owned(),
            controller: format!("{name}.example.com/controller"),
        };
        let text = fs::read_to_string(root().join("deploy/manifests/install.yaml")).unwrap();
        let objects = documents(&text)
            .into_iter()
            .filter(|object| object["kind"] != "CustomResourceDefinition");
        let objects: Vec<Value> = objects
            .map(|object| installation.renamed(object, replicas, arguments))
            .collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        bed.apply(&list.to_string()).unwrap();
        installation.until_ready(replicas as usize);
        installation
    }

    fn renamed(&self, mut object: Value, replicas: u32, arguments: &[&str]) -> Value {
        let kind = object["kind"].as_str().unwrap().to_owned();
        if object["metadata"]["namespace"].is_string() {
            object["metadata"]["namespace"] = json!(self.namespace);
        } else if kind == "Namespace" {
            object["metadata"]["name"] = json!(self.namespace);
        } else {
            object["metadata"]["name"] = json!(self.class);
        }
        match kind.as_str() {
            "ClusterRoleBinding" => {
                object["roleRef"]["name"] = json!(self.class);
                object["subjects"][0]["namespace"] = json!(self.namespace);
            }
            "RoleBinding" => object["subjects"][0]["namespace"] = json!(self.namespace),
            "GatewayClass" => object["spec"]["controllerName"] = json!(self.controller),
            "Deployment" => {
                object["spec"]["replicas"] = json!(replicas);
                let container = &mut object["spec"]["template"]["spec"]["containers"][0];
                let given = container["args"].as_array_mut().unwrap();
                given.retain(|argument| !argument.as_str().unwrap().starts_with("--controller-name"));
                given.push(json!(format!("--controller-name={}", self.controller)));
                given.extend(arguments.iter().map(|argument| json!(argument)));
            }
            _ => {}
        }
        object
    }

    /// Waits until exactly so many pods run, all of them ready.
    pub(crate) fn until_ready(&self, count: usize) -> Vec<Value> {
        eventually(&format!("{count} ready replicas in {}", self.namespace), || {
            let pods = self.pods();
            let ready = pods.iter().filter(|pod| is_ready(pod)).count();
            holds(
                ready == count && pods.len() == count,
                pods.iter().map(|pod| pod["status"].to_string()).collect::<String>(),
            )
            .map(|()| pods)
        })
    }

    pub(crate) fn pods(&self) -> Vec<Value> {
        self.bed.list(&path("pod", &self.namespace, ""))
    }

    /// The pod that writes, by its Lease.
    pub(crate) fn writer(&self) -> Option<String> {
        let leases = self.bed.list(&path("lease", &self.namespace, ""));
        let is_writers = |lease: &&Value| {
            lease["metadata"]["name"]
                .as_str()
                .unwrap()
                .starts_with("gatewright-writer")
        };
        let lease = leases.iter().find(is_writers)?;
        lease["spec"]["holderIdentity"]
            .as_str()
            .filter(|holder| !holder.is_empty())
            .map(str::to_owned)
    }

    pub(crate) fn pod(&self, name: &str) -> Value {
        self.bed.get(&path("pod", &self.namespace, name)).unwrap()
    }
}

/// The samples of a metric on one pod, each with its labels.
pub(crate) fn metric(pod: &Value, name: &str) -> Vec<(String, u64)> {
    let text = eventually("metrics", || web::get(probes(pod), "/metrics"));
    let samples = text.body().lines().filter_map(|line| {
        let rest = line.strip_prefix(name).filter(|rest| rest.starts_with(['{', ' ']))?;
        let (labels, value) = rest.rsplit_once(' ')?;
        Some((labels.to_owned(), value.parse().ok()?))
    });
    samples.collect()
}

/// The process of a pod of ours: the one that has the pod's name in its environment.
pub(crate) fn process(pod: &str) -> u32 {
    let wanted = format!("POD_NAME={pod}");
    let has_name = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == wanted.as_bytes())
    };
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let found: Vec<u32> = numbers.filter(has_name).collect();
    assert_eq!(found.len(), 1, "processes of {pod}");
    found[0]
}

/// Kills the process of a pod, which has no time to take leave.
pub(crate) fn kill(pod: &str) {
    signal(pod, "KILL");
}

/// Sends a signal to the process of a pod.
pub(crate) fn signal(pod: &str, signal: &str) {
    let process = process(pod).to_string();
    let sent = Command::new("kill").args(["-s", signal, &process]).status().unwrap();
    assert!(sent.success());
}

/// The name of an object.
pub(crate) fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_null()
        && crate::namespace::condition(&pod["status"]["conditions"], "Ready").0 == "True"
}

/// Where a replica answers probes.
pub(crate) fn probes(pod: &Value) -> SocketAddr {
    SocketAddr::new(address(pod), 9871)
}

pub(crate) fn address(pod: &Value) -> IpAddr {
    pod["status"]["podIP"].as_str().unwrap().parse().unwrap()
}
