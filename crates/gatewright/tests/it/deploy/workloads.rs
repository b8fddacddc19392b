//! What runs: locked down, told its flags rightly, and reachable where probes and policies look for it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::files::{documents, manifest, of_kind, read, renderings, root};
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

/// The seconds that an argument of the replicas gives.
fn seconds(pod: &Value, flag: &str) -> u64 {
    let arguments = pod["containers"][0]["args"].as_array().unwrap();
    let mut values = arguments
        .iter()
        .filter_map(|argument| argument.as_str()?.strip_prefix(flag));
    let value = values.next().unwrap_or_else(|| panic!("no {flag}"));
    value.trim_start_matches('=').trim_end_matches('s').parse().unwrap()
}

#[test]
fn a_replica_may_leave_in_order_before_its_pod_is_killed() {
    for name in renderings() {
        let objects = manifest(&name);
        let pod = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"];
        // To say that it leaves, to hand the writing on, and to take its own Lease away: three seconds each at most.
        let farewells = 9;
        let needed = seconds(pod, "--leave-delay") + seconds(pod, "--drain-timeout") + farewells;
        let given = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
        assert!(given > needed, "{name}: {given} s for what may take {needed} s");
    }
}

#[test]
fn the_network_policy_opens_what_is_needed_and_no_more() {
    for name in renderings() {
        let objects = manifest(&name);
        let policy = &of_kind(&objects, "NetworkPolicy")[0]["spec"];
        assert_eq!(policy["policyTypes"], json!(["Ingress", "Egress"]));
        // Traffic, and probes and metrics; the admin API is on loopback, where no policy reaches.
        let traffic = |protocol: &str| json!({ "protocol": protocol, "port": 20000, "endPort": 29999 });
        let expected = json!([
            { "ports": [traffic("TCP"), traffic("UDP")] },
            { "ports": [{ "protocol": "TCP", "port": "probes" }] },
        ]);
        assert_eq!(policy["ingress"], expected);
        // The API server, DNS and backends are anywhere.
        assert_eq!(policy["egress"], json!([{}]));
    }
}

#[test]
fn replicas_are_told_which_pod_they_are() {
    let expected = [
        ("POD_NAME", "metadata.name"),
        ("POD_NAMESPACE", "metadata.namespace"),
        ("POD_UID", "metadata.uid"),
        ("POD_IPS", "status.podIPs"),
        ("NODE_ZONE", "metadata.labels['topology.kubernetes.io/zone']"),
        ("NODE_NAME", "spec.nodeName"),
    ];
    for name in renderings() {
        let objects = manifest(&name);
        let container = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0];
        let variables: Vec<(&str, &str)> = container["env"]
            .as_array()
            .unwrap()
            .iter()
            .map(|variable| {
                let path = &variable["valueFrom"]["fieldRef"]["fieldPath"];
                (variable["name"].as_str().unwrap(), path.as_str().unwrap())
            })
            .collect();
        assert_eq!(variables, expected, "{name}");
    }
}

#[test]
fn metrics_are_scraped_and_settings_made_only_when_asked_for() {
    for name in renderings() {
        let objects = manifest(&name);
        for kind in ["ServiceMonitor", "Service", "GatewayConfig"] {
            assert!(of_kind(&objects, kind).is_empty(), "{name}: {kind}");
        }
        assert_eq!(of_kind(&objects, "PodDisruptionBudget")[0]["spec"]["maxUnavailable"], 1);
        let namespace = of_kind(&objects, "Namespace")[0];
        let enforced = &namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
        assert_eq!(enforced, "restricted", "{name}");
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
