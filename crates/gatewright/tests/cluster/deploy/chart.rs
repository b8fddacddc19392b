//! What Helm makes of the chart; `GOLDEN=write` (that is, `make gen`) writes the plain manifests.

use serde_json::Value;

use super::{
    files::{documents, hold, names_in, of_kind, renderings},
    helm::helm,
};

const MANIFESTS: &str = "# Made by `make gen` from deploy/chart: change that, or set its values, instead of this.\n";

/// What Helm renders.
pub(super) fn rendered(arguments: &[&str]) -> String {
    let mut all = vec![
        "template",
        "gatewright",
        "chart/gatewright",
        "--namespace",
        "gatewright-system",
        "--include-crds",
    ];
    // The newest version that the chart is checked against, so that the result does not depend on Helm's own idea of it.
    all.extend(["--kube-version", "1.36.0"]);
    all.extend(arguments);
    let output = helm(&all);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn kinds(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["kind"].as_str().unwrap()).collect()
}

#[test]
fn the_plain_manifests_are_what_the_chart_makes() {
    let names = renderings();
    for name in &names {
        let text = rendered(&["--values", &format!("chart/renderings/{name}")]);
        hold(&format!("deploy/manifests/{name}"), &format!("{MANIFESTS}{text}"));
    }
    assert_eq!(names_in("deploy/manifests"), names, "manifests that nobody makes");
}

#[test]
fn the_chart_passes_the_lint_of_helm() {
    let output = helm(&["lint", "--strict", "chart/gatewright"]);
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complaints}");
}

#[test]
fn every_part_of_the_chart_can_be_switched_on() {
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
    let objects = documents(&rendered(&["--set", &all.join(",")]));
    for kind in [
        "GatewayConfig",
        "ServiceMonitor",
        "Service",
        "NetworkPolicy",
        "PodDisruptionBudget",
    ] {
        assert_eq!(of_kind(&objects, kind).len(), 1, "{kind}");
    }
    let class = of_kind(&objects, "GatewayClass")[0];
    assert_eq!(class["spec"]["parametersRef"]["namespace"], "gatewright-system");
    // The Service that is scraped finds the port under the name that the pods give it.
    let port = &of_kind(&objects, "Service")[0]["spec"]["ports"][0];
    let pod = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"];
    assert_eq!(port["targetPort"], pod["containers"][0]["ports"][0]["name"]);
    assert_eq!(
        of_kind(&objects, "ServiceMonitor")[0]["spec"]["endpoints"][0]["port"],
        port["name"]
    );
    let policy = &of_kind(&objects, "NetworkPolicy")[0]["spec"]["ingress"];
    assert_eq!(policy[0]["from"][0]["ipBlock"]["cidr"], "10.0.0.0/8");
    assert_eq!(policy[1]["from"][0]["podSelector"]["matchLabels"]["app"], "prometheus");
    // There the namespace may not be restricted, and the names of the cluster are still to be found.
    assert_eq!(pod["hostNetwork"], true);
    assert_eq!(pod["dnsPolicy"], "ClusterFirstWithHostNet");
}

#[test]
fn every_part_of_the_chart_can_be_switched_off_and_metrics_are_scraped_only_when_asked_for() {
    let objects = documents(&rendered(&[]));
    let unasked = ["ServiceMonitor", "Service", "GatewayConfig", "Namespace"];
    assert!(
        kinds(&objects).iter().all(|kind| !unasked.contains(kind)),
        "{:?}",
        kinds(&objects)
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
    let objects = documents(&rendered(&["--set", &off.join(",")]));
    assert_eq!(kinds(&objects), ["CustomResourceDefinition", "Deployment"]);
}

#[test]
fn values_that_cannot_work_are_refused_with_the_reason() {
    let cases = [
        ("replicas=two", "replicas"),
        ("replica=2", "replica"),
        ("rbac.namespaced=true", "watchNamespaces"),
        ("serviceAccount.create=false", "serviceAccount.name is needed"),
        ("log.format=xml", "format"),
        ("leaveDelaySeconds=-1", "leaveDelaySeconds"),
        (
            "rbac.namespaced=true,watchNamespaces={a},gatewayConfig.create=true,gatewayConfig.namespace=b",
            "none of watchNamespaces",
        ),
    ];
    for (values, reason) in cases {
        let output = helm(&["template", "gatewright", "chart/gatewright", "--set", values]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(reason), "{values}: {said}");
    }
}
