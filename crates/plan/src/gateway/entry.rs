//! How a Gateway is reached, and what its Service is like if it is reached through one.

use std::collections::BTreeMap;

use gatewright_api::config::{ExternalTrafficPolicy, LoadBalancerEntry, ServiceType};
use gatewright_ir::Text;

/// A way in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    /// Its settings cannot be honoured, so nobody knows.
    Unknown,
    /// The listeners' ports on addresses of the host.
    Host,
    /// A Service of its own, which leads to ports that all Gateways share out among themselves.
    LoadBalancer(Balancer),
}

/// What the Service of a Gateway is like.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Balancer {
    pub(crate) service_type: ServiceType,
    pub(crate) annotations: BTreeMap<Text, Text>,
    pub(crate) external_traffic_policy: Option<ExternalTrafficPolicy>,
    pub(crate) class: Option<Text>,
}

impl Balancer {
    /// Takes over what a GatewayConfig states.
    pub(super) fn take_over(&mut self, stated: &LoadBalancerEntry) {
        let LoadBalancerEntry {
            service_type,
            annotations,
            external_traffic_policy,
            load_balancer_class,
        } = stated;
        self.service_type = service_type.unwrap_or(self.service_type);
        let annotations = annotations.iter().flatten();
        self.annotations
            .extend(annotations.map(|(key, value)| (key.as_str().into(), value.as_str().into())));
        self.external_traffic_policy = external_traffic_policy.or(self.external_traffic_policy);
        if let Some(class) = load_balancer_class {
            self.class = Some(class.as_str().into());
        }
    }
}
