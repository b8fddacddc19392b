//! The flags of a cluster, and what they come to.

use std::{env, net::IpAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use gatewright_api::config::Entry;
use gatewright_source::kube::{OwnerPod, stable_hash};

use crate::run::{DEFAULT_CONTROLLER, parse_duration};

/// Which cluster, and as what.
#[derive(Args)]
#[command(next_help_heading = "In a cluster")]
pub(crate) struct ClusterArgs {
    /// The kubeconfig, if not KUBECONFIG, the service account of this pod or ~/.kube/config
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, if not its current one
    #[arg(long, value_name = "NAME", conflicts_with = "files")]
    context: Option<String>,
    /// The namespaces whose routes count; all unless named. Routes attach to Gateways of any namespace
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', conflicts_with = "files")]
    watch_namespaces: Vec<String>,
    /// The namespace of the replicas' Leases, if not that of this pod or context
    #[arg(long, value_name = "NAMESPACE", env = "POD_NAMESPACE")]
    system_namespace: Option<String>,
    /// How Gateways are reached where no GatewayConfig says it
    #[arg(long, value_name = "ENTRY", conflicts_with = "files")]
    default_entry: Option<DefaultEntry>,
    /// Addresses at which the cluster reaches this replica, at most one of each family
    #[arg(long = "replica-address", value_name = "IP", env = "POD_IPS", value_delimiter = ',')]
    replica_addresses: Vec<IpAddr>,
    /// The node this replica runs on, for Services that keep traffic on the node where it arrives
    #[arg(long, value_name = "NAME", env = "NODE_NAME")]
    node_name: Option<String>,
    /// The zone of that node: endpoints that a Service means for it come first
    #[arg(long, value_name = "NAME", env = "NODE_ZONE")]
    zone: Option<String>,
    /// How long connections are still accepted after a signal to stop, until the cluster sends no more
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    leave_delay: Duration,
}

/// The ways in that need no settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum DefaultEntry {
    /// A Service of the Gateway's own
    LoadBalancer,
    /// The listeners' ports on addresses of this host
    Host,
}

/// A part in a cluster, as the flags and the environment say it.
pub(crate) struct ClusterSettings {
    pub(super) kubeconfig: Option<PathBuf>,
    pub(super) context: Option<String>,
    pub(super) namespaces: Vec<String>,
    pub(super) system_namespace: Option<String>,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) node: Option<String>,
    pub(crate) zone: Option<String>,
    pub(super) leave_delay: Duration,
    pub(crate) default_entry: Entry,
}

impl From<ClusterArgs> for ClusterSettings {
    fn from(args: ClusterArgs) -> Self {
        let is_given = |text: &String| !text.is_empty();
        Self {
            kubeconfig: args.kubeconfig,
            context: args.context,
            namespaces: args.watch_namespaces.into_iter().filter(is_given).collect(),
            system_namespace: args.system_namespace.filter(is_given),
            addresses: one_of_each_family(&args.replica_addresses),
            node: args.node_name.filter(is_given),
            zone: args.zone.filter(is_given),
            leave_delay: args.leave_delay,
            default_entry: match args.default_entry {
                Some(DefaultEntry::Host) => Entry::Host,
                Some(DefaultEntry::LoadBalancer) | None => Entry::LoadBalancer,
            },
        }
    }
}

/// An EndpointSlice lists a replica once, so the first address of each family counts.
fn one_of_each_family(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let first = |is_wanted: fn(&IpAddr) -> bool| addresses.iter().copied().find(is_wanted);
    [first(IpAddr::is_ipv4), first(IpAddr::is_ipv6)]
        .into_iter()
        .flatten()
        .collect()
}

/// The pod that this process runs in, where the chart says so: its Lease goes with it.
pub(super) fn own_pod() -> Option<OwnerPod> {
    let given = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    Some(OwnerPod {
        name: given("POD_NAME")?,
        uid: given("POD_UID")?,
    })
}

/// The name of a Lease: a second installation beside this one, of another controller name, elects its own writer.
pub(super) fn lease_name(prefix: &str, controller: &str) -> String {
    if controller == DEFAULT_CONTROLLER {
        return prefix.to_owned();
    }
    format!("{prefix}-{:016x}", stable_hash(controller.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_CONTROLLER, lease_name, one_of_each_family};

    #[test]
    fn the_first_address_of_each_family_counts() {
        let addresses = ["fd00::1", "10.0.0.1", "fd00::2", "10.0.0.2"].map(|text| text.parse().unwrap());
        let expected = ["10.0.0.1", "fd00::1"].map(|text| text.parse::<std::net::IpAddr>().unwrap());
        assert_eq!(one_of_each_family(&addresses), expected);
    }

    #[test]
    fn another_controller_elects_its_own_writer() {
        assert_eq!(lease_name("writer", DEFAULT_CONTROLLER), "writer");
        assert_ne!(
            lease_name("writer", "a.example/one"),
            lease_name("writer", "a.example/two")
        );
    }
}
