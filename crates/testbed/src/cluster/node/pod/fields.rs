//! What a pod can say about itself to its containers: the fields of the downward API.

use std::{collections::BTreeMap, net::Ipv4Addr};

use k8s_openapi::api::core::v1::Pod;

use super::super::NODE_NAME;

/// What is known of a pod beyond its object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) pod: Ipv4Addr,
    pub(super) node: Ipv4Addr,
}

/// The value of a field such as `metadata.name`; none for a field that Kubernetes does not offer.
pub(super) fn field(pod: &Pod, path: &str, addresses: Addresses) -> Option<String> {
    let metadata = &pod.metadata;
    let text = |value: &Option<String>| Some(value.clone().unwrap_or_default());
    match path {
        "metadata.name" => text(&metadata.name),
        "metadata.namespace" => text(&metadata.namespace),
        "metadata.uid" => text(&metadata.uid),
        "metadata.labels" => Some(lines(metadata.labels.as_ref())),
        "metadata.annotations" => Some(lines(metadata.annotations.as_ref())),
        "spec.nodeName" => Some(NODE_NAME.to_owned()),
        "spec.serviceAccountName" => text(&pod.spec.as_ref()?.service_account_name),
        "status.podIP" | "status.podIPs" => Some(addresses.pod.to_string()),
        "status.hostIP" | "status.hostIPs" => Some(addresses.node.to_string()),
        _ => {
            let (map, key) = path.strip_suffix("']")?.split_once("['")?;
            let map = match map {
                "metadata.labels" => metadata.labels.as_ref(),
                "metadata.annotations" => metadata.annotations.as_ref(),
                _ => return None,
            };
            Some(map.and_then(|map| map.get(key)).cloned().unwrap_or_default())
        }
    }
}

/// A map as files show it: one quoted pair per line.
fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    let pairs = map.into_iter().flatten().map(|(key, value)| format!("{key}={value:?}"));
    pairs.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::{Addresses, field};

    #[test]
    fn a_pod_knows_its_name_its_labels_and_its_address() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": { "name": "a", "namespace": "b", "labels": { "app": "x", "tier": "y" } },
            "spec": { "containers": [], "serviceAccountName": "robot" },
        }))
        .unwrap();
        let addresses = Addresses {
            pod: Ipv4Addr::new(10, 244, 1, 1),
            node: Ipv4Addr::new(10, 244, 0, 1),
        };
        let read = |path: &str| field(&pod, path, addresses);
        assert_eq!(read("metadata.name").as_deref(), Some("a"));
        assert_eq!(read("metadata.labels['app']").as_deref(), Some("x"));
        assert_eq!(read("metadata.labels['none']").as_deref(), Some(""));
        assert_eq!(read("metadata.labels").as_deref(), Some("app=\"x\"\ntier=\"y\""));
        assert_eq!(read("spec.serviceAccountName").as_deref(), Some("robot"));
        assert_eq!(read("status.podIP").as_deref(), Some("10.244.1.1"));
        assert_eq!(read("status.phase"), None);
    }
}
