//! A replica that runs beside a cluster and not in it, started as the documentation says.

use std::{
    net::{SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
};

use serde_json::json;

use super::{
    empty::{Empty, SYSTEM},
    files::{block, manifest, of_kind, read},
};
use crate::{
    bed::{eventually, holds},
    namespace::{Namespace, until_status},
};

/// A process that ends with the test.
struct Running(Child);

impl Running {
    /// Asks it to end, and waits until it has.
    fn stop(mut self) {
        let asked = Command::new("kill").arg(self.0.id().to_string()).status().unwrap();
        assert!(asked.success());
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_replica_beside_a_cluster_serves_it_on_its_own_host() {
    let empty = Empty::take();
    empty.run(&format!("kubectl apply --server-side {}", Empty::gateway_api()));
    empty.run("kubectl apply --server-side --filename=deploy/crds");
    empty.run("kubectl wait --for=condition=Established --timeout=60s crd --all");
    empty.run(&format!("kubectl create namespace {SYSTEM}"));
    let namespace = Namespace::make(empty.bed, "beside");
    let port = free_port();
    let installed = manifest("install.yaml");
    empty
        .bed
        .apply(&of_kind(&installed, "GatewayClass")[0].to_string())
        .unwrap();
    let listeners = json!([{ "name": "http", "protocol": "HTTP", "port": port }]);
    namespace.create(
        "gateway",
        &json!({
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "Gateway",
            "metadata": { "name": "door" },
            "spec": { "gatewayClassName": "gatewright", "listeners": listeners },
        }),
    );
    namespace.route("door", "door", "echo");
    namespace.backend("echo");

    let command = block(&read("docs/kubernetes.md"), "\n## Beside a cluster", "sh");
    let kubeconfig = empty.bed.cluster.kubeconfig().display().to_string();
    assert!(command.contains(" ~/.kube/config "), "{command}");
    // Others use the usual ports too.
    let operators = format!(
        "--admin=127.0.0.1:{} --health-probe-bind-address=0 --metrics-bind-address=0",
        free_port()
    );
    let command = command.trim().replace("~/.kube/config", &kubeconfig);
    let mut shell = empty.program(&["sh", "-c", &format!("exec {command} {operators}")]);
    let replica = Running(shell.stderr(Stdio::null()).spawn().unwrap());
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let answer = until_status(address, "/hello", 200);
    assert_eq!(answer.service(), "echo");
    namespace.until_gateway("door", "Programmed", ("True", "Programmed"));
    assert!(
        namespace.get("service", "gatewright-door").is_err(),
        "there is no need of a Service"
    );

    replica.stop();
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases");
    eventually("the end of the replica's Lease", || {
        let leases = empty.bed.list(&leases);
        let names: Vec<_> = leases.iter().map(|lease| &lease["metadata"]["name"]).collect();
        holds(names == ["gatewright-writer"], format_args!("{names:?}"))
    });
    empty.run("gatewright uninstall");
    empty.run(&format!("kubectl delete namespace {SYSTEM} beside"));
    empty.run("kubectl delete gatewayclass gatewright");
    empty.run("kubectl delete --filename=deploy/crds");
    empty.run(&format!("kubectl delete {}", Empty::gateway_api()));
}
