//! The cluster that is judged: the kinds of the experimental channel, Gatewright as its manifests install it, and the class
//! whose Gateways the suite makes.

use std::{fs, net::Ipv4Addr, path::Path};

use anyhow::Context;

use crate::{
    cluster::{Cluster, Image, Options},
    process,
    programs::workspace,
};

/// The class that the suite uses.
const CLASS: &str = "gateway-conformance";
const CONTROLLER: &str = "gatewright.dev/gateway-controller";
/// Where Gatewright's own pods are.
const NAMESPACE: &str = "gatewright-system";

/// What serves the Gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DataPlane {
    /// The proxy in the controller's own process.
    Builtin,
}

impl DataPlane {
    /// Its name in that of a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
        }
    }
}

/// The cluster.
pub(super) struct Bed {
    cluster: Cluster,
}

impl Bed {
    /// Starts it and waits until the class is accepted.
    pub(super) fn start(gatewright: &Path, data_plane: DataPlane) -> anyhow::Result<Self> {
        let mut options = Options::new("conformance", gatewright);
        let name_server = std::env::current_exe()?;
        options.images = options.images.with("coredns", Image::name_server(name_server));
        let bed = Self {
            cluster: Cluster::start(options)?,
        };
        let manifests = workspace().join("deploy/manifests/install.yaml");
        let manifests = fs::read_to_string(&manifests).with_context(|| format!("{}", manifests.display()))?;
        bed.cluster.apply(&manifests)?;
        bed.cluster.apply(&class(data_plane))?;
        let wait = ["wait", "--timeout=120s", "--for=condition=Available"];
        bed.kubectl(&[&wait[..], &["--namespace", NAMESPACE, "deployment/gatewright"]].concat())?;
        let class = format!("gatewayclass/{CLASS}");
        bed.kubectl(&["wait", "--timeout=60s", "--for=condition=Accepted", &class])?;
        Ok(bed)
    }

    /// The cluster itself.
    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// An address that a Gateway may ask for and that nobody gets who does not ask.
    pub(super) fn usable_address(&self) -> anyhow::Result<Ipv4Addr> {
        self.cluster
            .last_balancer_address()
            .context("the cluster's pool is empty")
    }

    /// Writes what Gatewright's replicas said into files of a folder.
    pub(super) fn keep_logs(&self, folder: &Path) -> anyhow::Result<()> {
        let pods = self.kubectl(&["get", "pods", "--namespace", NAMESPACE, "--output=name"])?;
        for (number, pod) in pods.lines().enumerate() {
            let text = self.kubectl(&["logs", "--namespace", NAMESPACE, pod])?;
            fs::write(folder.join(format!("gatewright-{number}.log")), text)?;
        }
        Ok(())
    }

    /// Removes it.
    pub(super) fn stop(self) -> anyhow::Result<()> {
        self.cluster.stop()
    }

    fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = self.cluster.kubectl();
        command.args(arguments);
        process::output(&command)
    }
}

fn class(data_plane: DataPlane) -> String {
    match data_plane {
        DataPlane::Builtin => format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {{ name: {CLASS} }}\n\
             spec: {{ controllerName: {CONTROLLER} }}\n"
        ),
    }
}
