//! The control plane: what it offers, and that it can be reached.

use std::process::Command;

use crate::world::cluster;

#[test]
fn gateway_api_is_installed_with_the_kinds_that_are_being_tried_out() {
    let kinds = cluster().run_kubectl(["api-resources", "--output=name"]).unwrap();
    for kind in [
        "gateways.gateway.networking.k8s.io",
        "tcproutes.gateway.networking.k8s.io",
        "xmeshes.gateway.networking.x-k8s.io",
    ] {
        assert!(kinds.lines().any(|line| line == kind), "no {kind} in {kinds}");
    }
    let policies = cluster()
        .run_kubectl(["get", "validatingadmissionpolicies", "--output=name"])
        .unwrap();
    assert!(policies.contains("safe-upgrades"), "{policies}");
}

#[test]
fn a_client_in_this_process_reaches_the_api_server() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let version = runtime.block_on(async { cluster().client().await.unwrap().apiserver_version().await.unwrap() });
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
}

/// Else the bridge takes the lowest of its ports' addresses, which changes with the pods, and whoever remembers the old one
/// does not reach the API server for half a minute.
#[test]
fn the_node_keeps_its_hardware_address_whatever_pods_come_and_go() {
    let namespace = format!("gwtb-{}", cluster().name());
    let output = Command::new("ip")
        .args(["-netns", &namespace, "-json", "link"])
        .output()
        .unwrap();
    let links: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let (bridge, ports): (Vec<_>, Vec<_>) = links.iter().partition(|link| link["ifname"] == "bridge");
    assert_eq!(bridge.len(), 1, "{links:?}");
    assert!(ports.iter().any(|port| port["master"] == "bridge"), "{links:?}");
    for port in ports {
        assert_ne!(port["address"], bridge[0]["address"], "{links:?}");
    }
}
