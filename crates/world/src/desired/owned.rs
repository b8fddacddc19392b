//! Objects that we make: the Service of a Gateway that is reached through one, and its EndpointSlices.
//!
//! The planner says what they are like; whoever writes them adds the reference to their owner and sees to it that they
//! stay so. Everything is typed up to the last moment, so that no tenant's text can become another field.

mod name;

use std::{collections::BTreeMap, fmt, net::IpAddr};

use gatewright_api::{
    ObjectName,
    config::{ExternalTrafficPolicy, ServiceType},
};
use gatewright_ir::{Port, Text, Transport};
use serde_json::{Value, json};

pub(crate) use name::short_digest;
pub use name::{gateway_label, service_name, slice_name};

/// The label that says who made an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Its value on objects of ours.
pub const MANAGER: &str = "gatewright";
/// The label with the name of the Gateway, see [`gateway_label`].
pub const GATEWAY_NAME: &str = "gateway.networking.k8s.io/gateway-name";
/// The label of an EndpointSlice with the name of its Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label of an EndpointSlice that tells the controllers of the cluster to leave it alone, with its value.
pub const SLICE_MANAGED_BY: (&str, &str) = ("endpointslice.kubernetes.io/managed-by", "gatewright.dev");

/// An object that we make.
#[derive(Clone, Debug, PartialEq)]
pub struct Owned {
    /// The object.
    pub name: OwnedName,
    /// The object it is made for and goes with.
    pub owner: ObjectName,
    /// Its labels.
    pub labels: BTreeMap<Text, Text>,
    /// Its annotations.
    pub annotations: BTreeMap<Text, Text>,
    /// The rest.
    pub body: OwnedBody,
}

/// The name of an object that we make.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnedName {
    /// The kind.
    pub kind: OwnedKind,
    /// The namespace.
    pub namespace: Text,
    /// The name.
    pub name: Text,
}

/// The kinds of objects that we make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnedKind {
    /// `Service` of the core group.
    Service,
    /// `EndpointSlice` of `discovery.k8s.io`.
    EndpointSlice,
}

/// What an object of ours is like.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedBody {
    /// A Service without selector.
    Service(ServiceBody),
    /// Where one port of a Service leads.
    EndpointSlice(SliceBody),
    /// It is there and stays as it is. What its Gateway asks for cannot be honoured now, and to delete the Service would
    /// lose the address that clients know.
    Kept,
}

/// A Service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceBody {
    /// Its type.
    pub kind: ServiceType,
    /// Its ports, by number.
    pub ports: Vec<EntryPort>,
    /// Whether nodes hand connections on; not for type `ClusterIP`.
    pub external_traffic_policy: Option<ExternalTrafficPolicy>,
    /// Whose load balancer; only for type `LoadBalancer`.
    pub load_balancer_class: Option<Text>,
    /// The address that is asked for; only for type `LoadBalancer`.
    pub load_balancer_ip: Option<IpAddr>,
}

/// A port of a Gateway, and the port to which its connections go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryPort {
    /// The port that clients connect to.
    pub port: Port,
    /// The port that replicas bind.
    pub target: u16,
}

/// An EndpointSlice: one port on all replicas, by one family of addresses.
///
/// One for each port, because a slice says of an endpoint only as a whole whether it is ready: a replica that has not
/// opened a new port yet must not lose the connections to all the others.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceBody {
    /// The family of its addresses.
    pub family: Family,
    /// Its port.
    pub port: EntryPort,
    /// Its endpoints, by address.
    pub endpoints: Vec<SliceEndpoint>,
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A replica in an EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SliceEndpoint {
    /// Where it is.
    pub address: IpAddr,
    /// The node it runs on.
    pub node: Option<Text>,
    /// Whether it accepts connections on the port.
    pub is_listening: bool,
    /// Whether it is about to stop.
    pub is_leaving: bool,
}

impl Owned {
    /// The object as it is to be applied; none if it stays as it is. The reference to the owner is not in it: it needs an
    /// identity that only the API server gives.
    pub fn to_value(&self) -> Option<Value> {
        let OwnedName { kind, namespace, name } = &self.name;
        let mut metadata = json!({ "namespace": namespace, "name": name, "labels": self.labels });
        if !self.annotations.is_empty()
            && let Some(fields) = metadata.as_object_mut()
        {
            fields.insert("annotations".to_owned(), json!(self.annotations));
        }
        let mut value = json!({ "apiVersion": kind.api_version(), "kind": kind.as_str(), "metadata": metadata });
        let body = match &self.body {
            OwnedBody::Kept => return None,
            OwnedBody::Service(body) => json!({ "spec": body.to_value() }),
            OwnedBody::EndpointSlice(body) => body.to_value(),
        };
        if let (Some(fields), Value::Object(body)) = (value.as_object_mut(), body) {
            fields.extend(body);
        }
        Some(value)
    }
}

impl ServiceBody {
    fn to_value(&self) -> Value {
        let Self {
            kind,
            ports,
            external_traffic_policy,
            load_balancer_class,
            load_balancer_ip,
        } = self;
        let ports = ports.iter().map(
            |entry| json!({ "name": entry.name(), "port": entry.port.number, "targetPort": entry.target, "protocol": entry.port.transport.as_str() }),
        );
        let mut spec = json!({ "type": kind, "ports": ports.collect::<Value>() });
        if let Some(fields) = spec.as_object_mut() {
            let mut say = |field: &str, value: Option<Value>| {
                fields.extend(value.map(|value| (field.to_owned(), value)));
            };
            say(
                "externalTrafficPolicy",
                external_traffic_policy.map(|policy| json!(policy)),
            );
            say(
                "loadBalancerClass",
                load_balancer_class.as_ref().map(|class| json!(class)),
            );
            say("loadBalancerIP", load_balancer_ip.map(|address| json!(address)));
        }
        spec
    }
}

impl SliceBody {
    fn to_value(&self) -> Value {
        let Self {
            family,
            port,
            endpoints,
        } = self;
        let endpoints = endpoints.iter().map(|endpoint| {
            let SliceEndpoint {
                address,
                node,
                is_listening,
                is_leaving,
            } = endpoint;
            // Who leaves is still served from where nobody else is.
            let conditions = json!({
                "ready": *is_listening && !*is_leaving,
                "serving": is_listening,
                "terminating": is_leaving,
            });
            let mut endpoint = json!({ "addresses": [address], "conditions": conditions });
            if let (Some(node), Some(fields)) = (node, endpoint.as_object_mut()) {
                fields.insert("nodeName".to_owned(), json!(node));
            }
            endpoint
        });
        json!({
            "addressType": family.as_str(),
            "endpoints": endpoints.collect::<Value>(),
            "ports": [{ "name": port.name(), "port": port.target, "protocol": port.port.transport.as_str() }],
        })
    }
}

impl EntryPort {
    /// The name by which a Service and its slices mean the same port.
    pub fn name(&self) -> String {
        let Port { number, transport } = self.port;
        match transport {
            Transport::Tcp => format!("tcp-{number}"),
            Transport::Udp => format!("udp-{number}"),
        }
    }
}

impl Family {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The family as an EndpointSlice writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

impl OwnedKind {
    /// The kind as written in YAML.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
        }
    }

    /// Group and version, as written in YAML.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Service => "v1",
            Self::EndpointSlice => "discovery.k8s.io/v1",
        }
    }
}

impl fmt::Display for OwnedName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests;
