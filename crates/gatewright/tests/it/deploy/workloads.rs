//! What runs: locked down, told its flags rightly, and reachable where probes and policies look for it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{documents, manifest, of_kind, read, renderings, root};
use crate::process::whole;

/// Every Deployment that we ship, with where it stands.
fn deployments() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let installed = renderings()
        .into_iter()
        .map(|name| (format!("deploy/manifests/{name}"), 1));
    let examples = [("examples/cluster-quickstart/2-backends.yaml".to_owned(), 2)];
    for (path, expected) in installed.chain(examples) {
        let objects = documents(&read(&path));
        let deployments = of_kind(&objects, "Deployment");
        assert_eq!(deployments.len(), expected, "{path}");
        found.extend(
            deployments
                .into_iter()
                .map(|deployment| (path.clone(), deployment.clone())),
        );
    }
    found
}

#[test]
fn containers_run_as_nobody_with_nothing_to_write_and_no_capability() {
    for (path, deployment) in deployments() {
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{path}");
        assert_eq!(pod["securityContext"]["runAsUser"], 65532, "{path}");
        assert_eq!(
            pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault",
            "{path}"
        );
        for field in ["hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers"] {
            assert_eq!(pod.get(field), None, "{path}");
        }
        for container in pod["containers"].as_array().unwrap() {
            let expected = json!({
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            });
            assert_eq!(container["securityContext"], expected, "{path}");
            assert!(container["resources"]["limits"]["memory"].is_string(), "{path}");
        }
    }
}

#[test]
fn the_image_runs_as_the_user_that_the_pods_ask_for() {
    let dockerfile = read("Dockerfile");
    assert!(dockerfile.contains("\nUSER 65532:65532\n"));
    // The testbed's image and `kubectl exec` look for it there.
    assert!(dockerfile.contains("\nENTRYPOINT [\"/usr/local/bin/gatewright\"]\n"));
}

#[test]
fn everything_runs_the_version_that_this_is() {
    let image = concat!("gatewright:", env!("CARGO_PKG_VERSION"));
    for (path, deployment) in deployments() {
        assert_eq!(
            deployment["spec"]["template"]["spec"]["containers"][0]["image"], image,
            "{path}"
        );
    }
}

#[test]
fn every_argument_of_the_replicas_is_a_flag_of_run() {
    let help = whole(&root(), &["run", "--help"]);
    let flags: BTreeSet<&str> = help
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")))
        .collect();
    for name in renderings() {
        let objects = manifest(&name);
        let container = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0];
        let arguments: Vec<&str> = container["args"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(arguments[0], "run");
        for argument in &arguments[1..] {
            let flag = argument.split_once('=').map_or(*argument, |(flag, _)| flag);
            assert!(flags.contains(flag), "{name}: `gatewright run` knows no {flag}");
        }
    }
}

#[test]
fn open_requests_may_end_before_a_pod_is_killed() {
    for name in renderings() {
        let objects = manifest(&name);
        let pod = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"];
        let arguments = pod["containers"][0]["args"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str);
        let drain = arguments
            .into_iter()
            .find_map(|argument| argument.strip_prefix("--drain-timeout="));
        let drain: u64 = drain.unwrap().trim_end_matches('s').parse().unwrap();
        assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() >= drain + 10);
    }
}

#[test]
fn probes_policies_and_budgets_look_at_what_is_there() {
    for name in renderings() {
        let objects = manifest(&name);
        let deployment = of_kind(&objects, "Deployment")[0];
        let template = &deployment["spec"]["template"];
        let container = &template["spec"]["containers"][0];
        let ports = container["ports"].as_array().unwrap();
        let probes = ports.iter().find(|port| port["name"] == "probes").unwrap();
        for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
            assert_eq!(container[probe]["httpGet"], json!({ "path": path, "port": "probes" }));
        }
        let arguments = container["args"].as_array().unwrap();
        for flag in ["--health-probe-bind-address", "--metrics-bind-address"] {
            let expected = format!("{flag}=0.0.0.0:{}", probes["containerPort"]);
            assert!(arguments.contains(&json!(expected)), "{expected}");
        }
        let chosen = &deployment["spec"]["selector"]["matchLabels"];
        assert_eq!(
            of_kind(&objects, "PodDisruptionBudget")[0]["spec"]["selector"]["matchLabels"],
            *chosen
        );
        assert_eq!(
            of_kind(&objects, "NetworkPolicy")[0]["spec"]["podSelector"]["matchLabels"],
            *chosen
        );
        for (label, value) in chosen.as_object().unwrap() {
            assert_eq!(template["metadata"]["labels"][label], *value);
        }
    }
}
