//! The network of a cluster: one namespace with a bridge in it, and one more for every pod.
//!
//! etcd, the API server, the controllers and the node live in the cluster's namespace, so two clusters never meet, whatever
//! ports they use. Pods hang on the bridge with a cable each. One more cable leads to the machine's own namespace, which is
//! thus a neighbour on the same wire: a test reaches pods, the API server and the addresses of LoadBalancer Services
//! without routes or address translation, and nothing leads further out. Deleting the namespace removes all of it.
//!
//! ```text
//!  machine            cluster's namespace                          pods' namespaces
//!  gwtb0 .0.2 ─────── uplink ─┬─ bridge .0.1 (API server, kubelet)
//!                             │         and .8.0/21 (LoadBalancers)
//!                             ├─ pod1 ──────────────────────────── eth0 .1.1
//!                             └─ pod2 ──────────────────────────── eth0 .1.2
//! ```

mod subnet;

use std::{
    fs::File,
    net::Ipv4Addr,
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

pub(super) use subnet::{Range, Subnet};

use super::state::{self, Ledger};
use crate::locks;

const BRIDGE: &str = "bridge";
const UPLINK: &str = "uplink";

/// How long the kernel may take to remove a namespace.
const REMOVAL: Duration = Duration::from_secs(30);

/// The network of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Network {
    /// Its addresses.
    pub(super) subnet: Subnet,
    namespace: String,
    ledger: Ledger,
}

impl Network {
    /// Makes the cluster's namespace, on a subnet that nobody on this machine uses.
    pub(super) fn make(name: &str, ledger: Ledger) -> anyhow::Result<Self> {
        // Two that look for a free subnet at the same time would find the same one.
        let _lock = locks::wait_for_lock(Path::new(state::ROOT), Duration::from_mins(1))?;
        let subnet = Subnet::free()?;
        let namespace = format!("gwtb-{name}");
        ensure!(
            !path_of(&namespace).exists(),
            "the network namespace {namespace} exists and is not ours\n\nhint: choose another name for the cluster",
        );
        ledger.record(&namespace)?;
        let network = Self {
            subnet,
            namespace,
            ledger,
        };
        let (namespace, link) = (&network.namespace, subnet.link());
        let (node, host, length) = (subnet.node(), subnet.host(), Subnet::PREFIX_LENGTH);
        let balancers = subnet.balancers();
        ip(
            None,
            &[
                format!("netns add {namespace}"),
                format!("link add {link} type veth peer name {UPLINK} netns {namespace}"),
                format!("address add {host}/{length} dev {link}"),
                format!("link set {link} up"),
            ],
        )?;
        ip(
            Some(namespace),
            &[
                "link set lo up".to_owned(),
                // With an address of its own: else it takes the lowest of its ports', which changes as pods come and go, and
                // neighbours that know the old one are lost for half a minute.
                format!("link add {BRIDGE} address {} type bridge", subnet.hardware_address()),
                format!("address add {node}/{length} dev {BRIDGE}"),
                format!("link set {BRIDGE} up"),
                format!("link set {UPLINK} master {BRIDGE} up"),
                // Sockets can be bound to any address of the pool, and neighbours that ask for one are answered.
                format!("route add local {balancers} dev {BRIDGE}"),
            ],
        )?;
        Ok(network)
    }

    /// Makes a pod's namespace, with an address on the bridge.
    ///
    /// `number` is never used twice for one cluster.
    pub(super) fn add_pod(&self, number: u32) -> anyhow::Result<PodNetwork> {
        let namespace = format!("{}-{number}", self.namespace);
        let address = self.subnet.pod(number);
        self.ledger.record(&namespace)?;
        ip(None, &[format!("netns add {namespace}")])?;
        ip(
            Some(&self.namespace),
            &[
                format!("link add pod{number} type veth peer name eth0 netns {namespace}"),
                format!("link set pod{number} master {BRIDGE} up"),
            ],
        )?;
        ip(
            Some(&namespace),
            &[
                "link set lo up".to_owned(),
                format!("address add {address}/{} dev eth0", Subnet::PREFIX_LENGTH),
                "link set eth0 up".to_owned(),
            ],
        )?;
        Ok(PodNetwork {
            namespace: path_of(&namespace),
            address,
        })
    }

    /// Ends what is left in a pod's namespace and deletes it.
    pub(super) fn remove_pod(pod: &PodNetwork) -> anyhow::Result<()> {
        let Some(name) = pod.namespace.file_name().and_then(|name| name.to_str()) else {
            bail!("{} has no name", pod.namespace.display());
        };
        // Programs that a container left behind would keep the namespace, and its address, alive.
        let script = r#"ip netns pids "$1" | xargs --no-run-if-empty kill -KILL; ip netns delete "$1""#;
        let output = Command::new("sh")
            .args(["-c", script, "sh", name])
            .stdin(Stdio::null())
            .output()?;
        ensure!(
            output.status.success(),
            "cannot delete {name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// Where the cluster's namespace can be entered.
    pub(super) fn path(&self) -> PathBuf {
        path_of(&self.namespace)
    }

    /// The name of the cluster's namespace.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Moves the calling thread, and the threads and programs that it starts from now on, into the cluster's namespace.
    pub(super) fn enter(&self) -> anyhow::Result<()> {
        let path = self.path();
        let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).context("cannot enter the namespace")
    }

    /// Waits until the kernel has removed the cable to the machine; it does so after the namespace's last user is gone.
    pub(super) fn wait_until_removed(&self) -> anyhow::Result<()> {
        let link = Path::new("/sys/class/net").join(self.subnet.link());
        let started = Instant::now();
        while link.exists() {
            ensure!(
                started.elapsed() < REMOVAL,
                "{} is still there after {REMOVAL:?}",
                link.display()
            );
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// The network of a pod.
#[derive(Clone, Debug)]
pub(super) struct PodNetwork {
    /// Where its namespace can be entered.
    pub(super) namespace: PathBuf,
    /// Its address.
    pub(super) address: Ipv4Addr,
}

fn path_of(namespace: &str) -> PathBuf {
    Path::new("/run/netns").join(namespace)
}

/// Gives `ip` a number of commands, in a namespace or in this thread's own.
fn ip(namespace: Option<&str>, commands: &[String]) -> anyhow::Result<()> {
    let mut command = Command::new("ip");
    if let Some(namespace) = namespace {
        command.args(["-netns", namespace]);
    }
    command
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start ip\n\nhint: install iproute2")?;
    if let Some(mut input) = child.stdin.take() {
        std::io::Write::write_all(&mut input, (commands.join("\n") + "\n").as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "the network could not be made: {said}in {commands:?}"
    );
    Ok(())
}
