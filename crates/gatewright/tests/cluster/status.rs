//! `gatewright status` in the pod of a replica.

use std::process::Command;

use crate::{
    bed::{eventually, shared},
    install::{Installation, name, process},
    namespace::{CLASS, Namespace},
};

#[test]
fn status_in_a_pod_shows_replicas_the_writer_and_gateways() {
    let bed = shared();
    let installation = Installation::shared(bed);
    let pods = installation.until_ready(2);
    let namespace = Namespace::make(bed, "shown");
    let address = namespace.served("shown-door", CLASS).ip().to_string();
    let writer = eventually("a writer", || installation.writer().ok_or_else(String::new));
    for pod in pods.iter().map(name) {
        // What `kubectl exec` would do: the same program, in the network of the pod.
        let output = Command::new("nsenter")
            .args(["--net", "--target", &process(&pod).to_string()])
            .args([env!("CARGO_BIN_EXE_gatewright"), "status"])
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let role = if pod == writer { "writes" } else { "does not write" };
        assert!(said.contains(&format!("replica {pod} {role}\n")), "{said}");
        for other in &pods {
            let row = said
                .lines()
                .find(|line| line.starts_with(&name(other)))
                .unwrap_or_default();
            assert!(row.contains(other["status"]["podIP"].as_str().unwrap()), "{said}");
            assert!(row.ends_with("Serving"), "{said}");
        }
        let mut rows = said
            .lines()
            .filter(|line| line.contains("shown-door") && line.contains(&address));
        assert!(rows.next().is_some(), "{said}");
    }
}
