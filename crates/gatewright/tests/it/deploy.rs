//! What installs Gatewright in a cluster: the definitions of our kinds, the plain manifests, and the example, as they are
//! committed. `GOLDEN=write` (that is, `make gen`) writes the definitions.
//!
//! What needs Helm or a cluster is in `tests/cluster/deploy`.

#![expect(
    clippy::indexing_slicing,
    reason = "a field that is not there is null, and fails the comparison it is read for"
)]

mod files;
mod rights;
mod workloads;

use std::{fs, process::Command};

use serde_json::{Value, json};

use files::{block, documents, hold, manifest, names_in, of_kind, read, renderings, root};

use crate::{
    process::whole,
    yaml::{FOLDER, folder},
};

const DEFINITIONS: &str = "# Made by `make gen` from the types of crates/api; `gatewright crds` prints the same.\n";
/// For `kubectl apply`, and for Helm, which takes nothing from outside a chart.
const DEFINITION_FOLDERS: [&str; 2] = ["deploy/crds", "deploy/chart/gatewright/crds"];

#[test]
fn what_is_generated_is_what_is_committed() {
    let output = Command::new(env!("CARGO_BIN_EXE_gatewright"))
        .arg("crds")
        .output()
        .unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut names = Vec::new();
    for document in printed.split_inclusive("\n---\n") {
        let text = document.strip_suffix("---\n").unwrap_or(document);
        let definition: Value = serde_saphyr::from_str(text).unwrap();
        let part = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        let name = format!("{}_{}.yaml", part("/spec/group"), part("/spec/names/plural"));
        for folder in DEFINITION_FOLDERS {
            hold(&format!("{folder}/{name}"), &format!("{DEFINITIONS}{text}"));
        }
        names.push(name);
    }
    names.sort();
    for folder in DEFINITION_FOLDERS {
        assert_eq!(names_in(folder), names, "{folder} has definitions that nobody has");
    }
}

#[test]
fn the_manifests_bring_the_definitions_of_all_our_kinds() {
    let folder = DEFINITION_FOLDERS[0];
    let definitions: Vec<Value> = names_in(folder)
        .iter()
        .flat_map(|name| documents(&read(&format!("{folder}/{name}"))))
        .collect();
    for name in renderings() {
        let objects = manifest(&name);
        let installed: Vec<Value> = of_kind(&objects, "CustomResourceDefinition")
            .into_iter()
            .cloned()
            .collect();
        assert_eq!(installed, definitions, "{name} is out of date: run `make gen`");
    }
}

#[test]
fn the_chart_has_the_version_of_the_binary() {
    let chart = &documents(&read("deploy/chart/gatewright/Chart.yaml"))[0];
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_example_for_clusters_is_fine_beside_what_a_cluster_adds() {
    let installed = manifest("install.yaml");
    let mut added = vec![of_kind(&installed, "GatewayClass")[0].clone()];
    let mut files = Vec::new();
    for file in fs::read_dir(root().join("examples/cluster-quickstart")).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let objects = documents(&text);
        added.extend(of_kind(&objects, "Service").into_iter().map(slice_of));
        files.push((path.file_name().unwrap().to_str().unwrap().to_owned(), text));
    }
    let added: Vec<String> = added
        .iter()
        .map(|object| serde_saphyr::to_string(object).unwrap())
        .collect();
    files.push(("added.yaml".to_owned(), added.join("---\n")));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let parent = folder(&files);
    insta::assert_snapshot!(whole(parent.path(), &["check", FOLDER, "--strict"]));
}

/// What a cluster writes for a Service with one ready pod.
fn slice_of(service: &Value) -> Value {
    let metadata = &service["metadata"];
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": { "kubernetes.io/service-name": metadata["name"] },
        },
        "addressType": "IPv4",
        "ports": [{ "port": 3000 }],
        "endpoints": [{ "addresses": ["10.244.0.9"] }],
    })
}

#[test]
fn the_documentation_needs_three_commands_to_the_first_request() {
    let commands = block(&read("docs/kubernetes.md"), "# In a Kubernetes cluster", "sh");
    // The same that are run by the tests of a cluster.
    assert_eq!(block(&read("README.md"), "\n## In a cluster", "sh"), commands);
    let commands = commands.replace("\\\n", " ");
    let commands: Vec<&str> = commands
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    assert!((1..=3).contains(&commands.len()), "{commands:#?}");
    for path in commands.iter().flat_map(|command| command.split_whitespace()) {
        if path.starts_with("deploy/") || path.starts_with("examples/") {
            assert!(root().join(path).exists(), "{path} does not exist");
        }
    }
}
