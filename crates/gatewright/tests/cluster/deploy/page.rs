//! The documentation for clusters does what it says: its commands are run as written, from an empty cluster and back to one.

use serde_json::Value;

use super::{
    empty::{Empty, SYSTEM},
    files::{block, read},
};

/// The commands of a block, one each.
fn commands(block: &str) -> Vec<String> {
    let joined = block.replace("\\\n", " ");
    let lines = joined.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_page_leads_from_an_empty_cluster_to_the_first_request_and_back() {
    let empty = Empty::take();
    let page = read("docs/kubernetes.md");
    let first = commands(&block(&page, "# In a Kubernetes cluster", "sh"));
    assert!(first.len() <= 3, "{first:#?}");
    let mut printed = String::new();
    for command in &first {
        // The one file that comes from the Internet is in the testbed's cache.
        let words = command.split(' ').map(|word| {
            let is_fetched = word.starts_with("https://") && word.ends_with("/standard-install.yaml");
            (!is_fetched).then_some(word)
        });
        let is_local = words.clone().all(|word| word.is_some());
        let mut words: Vec<&str> = words.flatten().collect();
        let kinds = Empty::gateway_api();
        if !is_local {
            words.retain(|word| *word != "-f");
            words.push(&kinds);
        }
        printed = empty.run(&words.join(" "));
    }
    let body = printed.find('{').map(|start| &printed[start..]).unwrap();
    let answer: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {printed}"));
    assert!(
        ["blue", "green"].contains(&answer["service"].as_str().unwrap()),
        "{answer}"
    );

    // Back: the example first, as its owner would do.
    for command in commands(&block(&page, "\n## Uninstall", "sh")) {
        empty.run(&command);
    }
    let gone = [
        format!("/api/v1/namespaces/{SYSTEM}"),
        "/apis/gateway.networking.k8s.io/v1/gatewayclasses/gatewright".to_owned(),
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gatewayconfigs.gatewright.dev".to_owned(),
    ];
    for path in gone {
        assert_eq!(empty.bed.get(&path).unwrap_err().code, 404, "{path}");
    }
    // What was declared is its owner's and stays, and so does the address that clients know.
    let gateway = "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways/quickstart";
    assert!(empty.bed.get(gateway).is_ok());
    assert!(
        empty
            .bed
            .get("/api/v1/namespaces/default/services/gatewright-quickstart")
            .is_ok()
    );

    empty.run("kubectl delete --filename=examples/cluster-quickstart");
    empty.run(&format!("kubectl delete {}", Empty::gateway_api()));
}
