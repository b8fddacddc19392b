//! From EndpointSlices to addresses that take traffic.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;

use super::Backends;

/// All slices, by the namespace and name of their Service.
pub(super) fn by_service(slices: Vec<Arc<EndpointSlice>>) -> BTreeMap<(String, String), Vec<Arc<EndpointSlice>>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for slice in slices {
        let service = slice.labels().get("kubernetes.io/service-name").cloned();
        if let Some(service) = service {
            found
                .entry((slice.namespace().unwrap_or_default(), service))
                .or_default()
                .push(slice);
        }
    }
    found
}

/// Where the traffic of a port goes: to those that are ready; if there are none, to those that still serve while they end.
pub(super) fn backends(slices: &[Arc<EndpointSlice>], port: &str, protocol: &str) -> Backends {
    let (mut ready, mut ending) = (BTreeSet::new(), BTreeSet::new());
    for slice in slices {
        let fits = |given: &&k8s_openapi::api::discovery::v1::EndpointPort| {
            given.name.as_deref().unwrap_or_default() == port && given.protocol.as_deref().unwrap_or("TCP") == protocol
        };
        let number = slice.ports.iter().flatten().find(fits).and_then(|port| port.port);
        let Some(number) = number.and_then(|number| u16::try_from(number).ok()) else {
            continue;
        };
        for endpoint in slice.endpoints.iter().flatten() {
            let conditions = endpoint.conditions.as_ref();
            let is_ready = conditions.and_then(|conditions| conditions.ready).unwrap_or(true);
            let is_serving = conditions.and_then(|conditions| conditions.serving).unwrap_or(is_ready);
            let addresses = endpoint
                .addresses
                .iter()
                .filter_map(|address| address.parse::<IpAddr>().ok());
            let addresses = addresses.map(|address| SocketAddr::new(address, number));
            if is_ready {
                ready.extend(addresses);
            } else if is_serving {
                ending.extend(addresses);
            }
        }
    }
    if ready.is_empty() { ending } else { ready }.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::discovery::v1::EndpointSlice;
    use serde_json::json;

    use super::backends;

    fn slice(endpoints: &serde_json::Value) -> Vec<Arc<EndpointSlice>> {
        let slice = json!({
            "metadata": { "name": "a" },
            "addressType": "IPv4",
            "ports": [{ "name": "web", "port": 3000, "protocol": "TCP" }, { "name": "dns", "port": 53, "protocol": "UDP" }],
            "endpoints": endpoints,
        });
        vec![Arc::new(serde_json::from_value(slice).unwrap())]
    }

    #[test]
    fn traffic_goes_to_the_ready_and_to_the_ending_only_if_nobody_is_ready() {
        let ready = json!({ "addresses": ["10.244.1.1"], "conditions": { "ready": true } });
        let ending = json!({ "addresses": ["10.244.1.2"], "conditions": { "ready": false, "serving": true } });
        let broken = json!({ "addresses": ["10.244.1.3"], "conditions": { "ready": false, "serving": false } });
        let both = slice(&json!([ready, ending, broken]));
        assert_eq!(*backends(&both, "web", "TCP"), ["10.244.1.1:3000".parse().unwrap()]);
        assert_eq!(*backends(&both, "dns", "UDP"), ["10.244.1.1:53".parse().unwrap()]);
        assert!(backends(&both, "web", "UDP").is_empty());
        assert!(backends(&both, "", "TCP").is_empty());
        let late = slice(&json!([ending, broken]));
        assert_eq!(*backends(&late, "web", "TCP"), ["10.244.1.2:3000".parse().unwrap()]);
        assert!(backends(&slice(&json!([broken])), "web", "TCP").is_empty());
    }
}
