//! The node as the cluster sees it: a Node that says it is ready, and a Lease that says it is alive.
//!
//! Without either the controllers declare the node lost after some 40 seconds, and its pods' endpoints go.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use jiff::Timestamp;
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::Node as NodeObject},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::time::sleep;

use super::{KUBELET_PORT, NODE_NAME, Node};

const MANAGER: &str = "testbed";

/// How often both are renewed: as a kubelet does.
const PERIOD: Duration = Duration::from_secs(10);

/// Makes the Node.
pub(super) async fn register(node: &Node) -> anyhow::Result<()> {
    let object = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NODE_NAME,
            "labels": {
                "kubernetes.io/hostname": NODE_NAME,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture(),
            },
        },
    });
    let nodes: Api<NodeObject> = Api::all(node.client.clone());
    let parameters = PatchParams::apply(MANAGER).force();
    nodes
        .patch(NODE_NAME, &parameters, &Patch::Apply(object))
        .await
        .context("cannot register the node")?;
    renew(node).await.context("cannot say that the node is ready")
}

/// Says again and again that the node is ready.
pub(super) async fn keep_fresh(node: Arc<Node>) {
    loop {
        // While the API server is away there is nobody to tell.
        let pause = if renew(&node).await.is_ok() {
            PERIOD
        } else {
            Duration::from_secs(1)
        };
        sleep(pause).await;
    }
}

async fn renew(node: &Node) -> kube::Result<()> {
    let now = Timestamp::now();
    let quantities = json!({ "cpu": "64", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti" });
    let status = json!({
        "status": {
            "capacity": quantities,
            "allocatable": quantities,
            "conditions": [{
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "the node runs pods as processes",
                "lastHeartbeatTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            }],
            "addresses": [
                { "type": "InternalIP", "address": node.address() },
                { "type": "Hostname", "address": NODE_NAME },
            ],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": KUBELET_PORT } },
            "nodeInfo": {
                "architecture": architecture(),
                "operatingSystem": "linux",
                "osImage": "processes",
                "containerRuntimeVersion": "process://1",
                "kubeletVersion": "v0.0.0-testbed",
                "kubeProxyVersion": "",
                "kernelVersion": "",
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
            },
        },
    });
    let nodes: Api<NodeObject> = Api::all(node.client.clone());
    nodes
        .patch_status(NODE_NAME, &PatchParams::default(), &Patch::Strategic(status))
        .await?;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": NODE_NAME },
        "spec": { "holderIdentity": NODE_NAME, "leaseDurationSeconds": 40, "renewTime": MicroTime(now) },
    });
    let leases: Api<Lease> = Api::namespaced(node.client.clone(), "kube-node-lease");
    leases
        .patch(NODE_NAME, &PatchParams::apply(MANAGER).force(), &Patch::Apply(lease))
        .await?;
    Ok(())
}

/// As Go spells it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
