//! What installs Gatewright in a cluster: the definitions of our kinds, the chart, the plain manifests that come from it, and
//! the example. `GOLDEN=write` (that is, `make gen`) writes what is generated.

#![expect(
    clippy::indexing_slicing,
    reason = "a field that is not there is null, and fails the comparison it is read for"
)]

mod helm;
mod rights;
mod workloads;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use helm::helm;

use crate::{
    process::whole,
    yaml::{FOLDER, folder},
};

const DEFINITIONS: &str = "# Made by `make gen` from the types of crates/api; `gatewright crds` prints the same.\n";
/// For `kubectl apply`, and for Helm, which takes nothing from outside a chart.
const DEFINITION_FOLDERS: [&str; 2] = ["deploy/crds", "deploy/chart/gatewright/crds"];
const MANIFESTS: &str = "# Made by `make gen` from deploy/chart: change that, or set its values, instead of this.\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn is_writing() -> bool {
    env::var("GOLDEN").is_ok_and(|value| value == "write")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A generated file is what it would be if it were generated now; or it is, if that was asked for.
fn hold(path: &str, text: &str) {
    if is_writing() {
        fs::write(root().join(path), text).unwrap();
    }
    let committed = fs::read_to_string(root().join(path)).unwrap_or_default();
    assert!(committed == text, "{path} is out of date: run `make gen`");
}

/// The files of a folder, in order.
fn names_in(folder: &str) -> Vec<String> {
    let files = fs::read_dir(root().join(folder)).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The documents of a stream of YAML.
fn documents(text: &str) -> Vec<Value> {
    let is_content = |document: &&str| document.lines().any(|line| !line.is_empty() && !line.starts_with('#'));
    let parts = text.split("\n---").filter(is_content);
    parts
        .map(|part| {
            let part = part.strip_prefix("---").unwrap_or(part);
            serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{error}\n{part}"))
        })
        .collect()
}

/// The names of the plain manifests, which are those of the values that they are rendered with.
fn renderings() -> Vec<String> {
    let names = names_in("deploy/chart/renderings");
    assert!(names.contains(&"install.yaml".to_owned()), "{names:?}");
    names
}

/// All objects of one of the plain manifests.
fn manifest(name: &str) -> Vec<Value> {
    documents(&read(&format!("deploy/manifests/{name}")))
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// What Helm renders; nothing where there is no Helm.
fn rendered(arguments: &[&str]) -> Option<String> {
    // The newest version that the chart is checked against, so that the result does not depend on Helm's own idea of it.
    let mut all = vec![
        "template",
        "gatewright",
        "chart/gatewright",
        "--namespace",
        "gatewright-system",
        "--include-crds",
    ];
    all.extend(["--kube-version", "1.36.0"]);
    all.extend(arguments);
    let output = helm(&all)?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn what_is_generated_is_what_is_committed() {
    // The definitions come first: they are part of the manifests.
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

    for name in renderings() {
        if let Some(text) = rendered(&["--values", &format!("chart/renderings/{name}")]) {
            hold(&format!("deploy/manifests/{name}"), &format!("{MANIFESTS}{text}"));
        }
    }
}

#[test]
fn the_chart_passes_the_lint_of_helm() {
    let Some(output) = helm(&["lint", "--strict", "chart/gatewright"]) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn every_part_of_the_chart_can_be_switched_on_and_off() {
    let all = [
        "gatewayConfig.create=true",
        "gatewayConfig.spec.entry=Host",
        "serviceMonitor.enabled=true",
        "serviceMonitor.labels.release=prometheus",
        "hostNetwork=true",
        "rbac.ownerReferences=true",
        "defaultEntry=Host",
        "watchNamespaces={a,b}",
        "extraArgs={--context=other}",
        "image.pullSecrets[0].name=pull",
        "podLabels.team=edge",
        "podAnnotations.note=x",
        "labels.owner=edge",
        "priorityClassName=system-cluster-critical",
        "nodeSelector.disk=ssd",
        "tolerations[0].operator=Exists",
        "networkPolicy.trafficFrom[0].ipBlock.cidr=10.0.0.0/8",
        "networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus",
        "serviceAccount.annotations.role=x",
    ];
    let Some(text) = rendered(&["--set", &all.join(",")]) else {
        return;
    };
    let objects = documents(&text);
    for kind in [
        "GatewayConfig",
        "ServiceMonitor",
        "Service",
        "NetworkPolicy",
        "PodDisruptionBudget",
    ] {
        assert_eq!(of_kind(&objects, kind).len(), 1, "{kind}");
    }
    assert_eq!(
        of_kind(&objects, "GatewayClass")[0]["spec"]["parametersRef"]["namespace"],
        "gatewright-system"
    );
    let off = [
        "gatewayClass.create=false",
        "rbac.create=false",
        "serviceAccount.create=false",
        "serviceAccount.name=other",
        "podDisruptionBudget.enabled=false",
        "networkPolicy.enabled=false",
        "topologySpreadConstraints=null",
    ];
    let text = rendered(&["--set", &off.join(",")]).unwrap();
    let kinds: Vec<Value> = documents(&text)
        .into_iter()
        .map(|object| object["kind"].clone())
        .collect();
    assert_eq!(kinds, ["CustomResourceDefinition", "Deployment"]);
}

#[test]
fn values_that_cannot_work_are_refused_with_the_reason() {
    let cases = [
        ("replicas=two", "replicas"),
        ("replica=2", "replica"),
        ("rbac.namespaced=true", "watchNamespaces"),
        ("serviceAccount.create=false", "serviceAccount.name is needed"),
        ("log.format=xml", "format"),
        (
            "rbac.namespaced=true,watchNamespaces={a},gatewayConfig.create=true,gatewayConfig.namespace=b",
            "none of watchNamespaces",
        ),
    ];
    for (values, reason) in cases {
        let Some(output) = helm(&["template", "gatewright", "chart/gatewright", "--set", values]) else {
            return;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(reason), "{values}: {said}");
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
    let page = read("docs/kubernetes.md");
    let (_, first) = page.split_once("```sh\n").unwrap();
    let (commands, _) = first.split_once("```").unwrap();
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
