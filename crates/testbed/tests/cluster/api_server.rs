//! The control plane: what it offers.

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
