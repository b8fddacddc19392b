//! A real Kubernetes control plane on a machine without containers, for tests and for people.
//!
//! etcd, kube-apiserver and kube-controller-manager are the real programs; a node of ours runs pods as processes in
//! namespaces of their own, and gives LoadBalancer Services addresses that work. Everything happens in network namespaces
//! that are made for the cluster, and everything is removed with it: by [`Cluster::stop`], by dropping it, and by a janitor
//! when the process that owns it dies. A cluster with another name can run beside it.
//!
//! `docs/testbed.md` says what works as in a real cluster and what does not.

mod balancer;
mod certificates;
mod control_plane;
mod daemon;
pub mod dns;
mod images;
mod life;
mod network;
mod node;
mod setup;
mod state;

use std::{
    fs,
    io::Write,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, bail, ensure};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use self::{
    certificates::Certificates,
    control_plane::{API_PORT, START},
    life::{Life, Order, Stage},
    network::Network,
    state::State,
};
use crate::{locks, say};

pub use images::{Image, Images, Program};
pub use setup::{
    Programs,
    gateway_api::{Channel, VERSION as GATEWAY_API_VERSION, manifests as gateway_api_manifests},
    gatewright::build_gatewright,
    set_up,
};
pub use state::{Owner, OwnerKind};

/// A file in a cluster's folder: it has started.
const READY: &str = "ready";

/// What a cluster is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tells it from others on the same machine.
    pub name: String,
    /// Which kinds of Gateway API it has; none if not given.
    pub gateway_api: Option<Channel>,
    /// Which images it has, beside `kubectl`.
    pub images: Images,
    /// What kind of process this is.
    pub owner: OwnerKind,
    /// Flags of the API server beside its usual ones.
    pub api_server_flags: Vec<String>,
}

impl Options {
    /// A cluster for a test, with all of Gateway API and with the images that our own binary stands for.
    pub fn new(name: impl Into<String>, gatewright: impl AsRef<Path>) -> Self {
        Self {
            name: name.into(),
            gateway_api: Some(Channel::Experimental),
            images: Images::ours(gatewright),
            owner: OwnerKind::Program,
            api_server_flags: Vec::new(),
        }
    }
}

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    name: String,
    state: State,
    network: Network,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    orders: tokio::sync::mpsc::UnboundedSender<Order>,
    /// The thread that lives in the cluster's namespace.
    thread: Option<JoinHandle<()>>,
    start_time: Duration,
}

impl Cluster {
    /// Starts a cluster and waits until it is ready for pods. Blocks; what it does is said on stderr.
    pub fn start(options: Options) -> anyhow::Result<Self> {
        setup::prepare_machine()?;
        let programs = Programs::set_up()?;
        let manifests = options.gateway_api.map(setup::gateway_api::manifests).transpose()?;
        install_crypto_provider();
        keep_signals_outside()?;
        let started = Instant::now();
        let state = State::claim(&options.name, options.owner)?;
        let network = Network::make(&options.name, state.ledger())?;
        let subnet = network.subnet;
        say(format_args!(
            "cluster {}: {subnet} in the network namespace {}",
            options.name,
            network.namespace()
        ));
        let certificates = Certificates::make(&state.folder().join("certificates"), subnet.node())?;
        let kubeconfig = state.folder().join("kubeconfig");
        let server = format!("https://{}:{API_PORT}", subnet.node());
        let text = serde_json::to_string_pretty(&certificates.kubeconfig(&options.name, &server)?)?;
        fs::write(&kubeconfig, text).with_context(|| format!("cannot write {}", kubeconfig.display()))?;
        let (orders, life_orders) = tokio::sync::mpsc::unbounded_channel();
        let (stages, progress) = mpsc::channel();
        let kubectl = programs.kubectl.clone();
        let images = options
            .images
            .with("kubectl", Image::new(&kubectl, "/usr/local/bin/kubectl"));
        let life = Life {
            network: network.clone(),
            control_plane: control_plane::Settings {
                programs,
                certificates: certificates.clone(),
                kubeconfig: kubeconfig.clone(),
                address: subnet.node(),
                folder: state.folder().to_owned(),
                api_server_flags: options.api_server_flags,
            },
            node: node::Settings {
                network: network.clone(),
                images,
                certificates,
                api: (subnet.node(), API_PORT),
                folder: state.folder().join("pods"),
            },
        };
        // From here on dropping the value cleans up.
        let mut cluster = Self {
            name: options.name,
            state,
            network,
            kubeconfig,
            kubectl,
            orders,
            thread: Some(life.begin(life_orders, stages)?),
            start_time: Duration::ZERO,
        };
        cluster.follow(&progress, &started, manifests.as_deref())?;
        cluster.start_time = started.elapsed();
        fs::write(cluster.folder().join(READY), "")?;
        say(format_args!(
            "cluster {}: ready after {:.1} s",
            cluster.name,
            cluster.start_time.as_secs_f64()
        ));
        Ok(cluster)
    }

    /// Waits for the stages of a start, and does what this thread has to do between them.
    fn follow(
        &self,
        progress: &mpsc::Receiver<anyhow::Result<Stage>>,
        started: &Instant,
        manifests: Option<&[PathBuf]>,
    ) -> anyhow::Result<()> {
        loop {
            let stage = progress.recv().context("the cluster's thread ended")??;
            let seconds = started.elapsed().as_secs_f64();
            say(format_args!("cluster {}: {stage} after {seconds:.1} s", self.name));
            match stage {
                Stage::ApiServer => {
                    if let Some(manifests) = manifests {
                        self.install(manifests)?;
                        let seconds = started.elapsed().as_secs_f64();
                        say(format_args!(
                            "cluster {}: Gateway API is installed after {seconds:.1} s",
                            self.name
                        ));
                    }
                }
                Stage::Node => return Ok(()),
            }
        }
    }

    fn install(&self, manifests: &[PathBuf]) -> anyhow::Result<()> {
        let mut command = self.kubectl();
        command.args(["apply", "--server-side", "--validate=false", "--output=name"]);
        for manifest in manifests {
            command.arg("--filename").arg(manifest);
        }
        run(command, None)?;
        let mut wait = self.kubectl();
        wait.args([
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "--output=name",
            "crd",
            "--all",
        ]);
        run(wait, None).map(drop)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file with which an administrator reaches the API server.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// How long it took to start, from programs that were there already.
    pub fn start_time(&self) -> Duration {
        self.start_time
    }

    /// The address at which pods reach programs of this process's own network namespace.
    pub fn host_address(&self) -> Ipv4Addr {
        self.network.subnet.host()
    }

    /// The last address that a LoadBalancer Service can have: it goes to one that asks for it, and else only after all others.
    pub fn last_balancer_address(&self) -> Option<Ipv4Addr> {
        self.network.subnet.balancers().usable().last()
    }

    /// Where the cluster keeps its files, among them the logs of the control plane.
    pub fn folder(&self) -> &Path {
        self.state.folder()
    }

    /// How a client reaches the API server as administrator.
    pub async fn client_config(&self) -> anyhow::Result<Config> {
        client_config(&self.kubeconfig).await
    }

    /// A client that is an administrator, for the runtime that this is called on.
    pub async fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::try_from(self.client_config().await?)?)
    }

    /// A kubectl command to which arguments can be added.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.folder().join("kubectl"));
        for name in [
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// Runs kubectl with some arguments and returns what it printed; fails if it fails.
    pub fn run_kubectl<const N: usize>(&self, arguments: [&str; N]) -> anyhow::Result<String> {
        let mut command = self.kubectl();
        command.args(arguments);
        run(command, None)
    }

    /// Applies manifests, given as YAML or JSON.
    pub fn apply(&self, manifests: &str) -> anyhow::Result<()> {
        let mut command = self.kubectl();
        command.args(["apply", "--server-side", "--force-conflicts", "--filename", "-"]);
        run(command, Some(manifests)).map(drop)
    }

    /// Takes the API server away, as a crash would. Pods and LoadBalancers go on.
    pub fn stop_api_server(&self) -> anyhow::Result<()> {
        self.order(Order::StopApiServer)
    }

    /// Brings the API server back and waits until it serves.
    pub fn start_api_server(&self) -> anyhow::Result<()> {
        self.order(Order::StartApiServer)
    }

    /// Freezes the API server, which then neither answers nor refuses, or lets it go on.
    pub fn freeze_api_server(&self, is_frozen: bool) -> anyhow::Result<()> {
        self.order(|reply| Order::FreezeApiServer(is_frozen, reply))
    }

    fn order(&self, order: impl FnOnce(life::Reply) -> Order) -> anyhow::Result<()> {
        let (reply, answer) = mpsc::channel();
        ensure!(self.orders.send(order(reply)).is_ok(), "the cluster's thread ended");
        answer.recv().context("the cluster's thread ended")?
    }

    /// Ends everything and removes every trace. Blocks until that is done.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.end()
    }

    fn end(&mut self) -> anyhow::Result<()> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        let _ = self.orders.send(Order::End);
        let is_sound = thread.join().is_ok();
        self.state.clean()?;
        self.network.wait_until_removed()?;
        ensure!(is_sound, "the cluster's thread panicked");
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            say(format_args!("cluster {}: {error:#}", self.name));
        }
    }
}

/// Waits until a cluster that somebody else is starting can be used.
pub fn wait_until_ready(owner: &Owner, name: &str) -> anyhow::Result<()> {
    let started = Instant::now();
    while !state::folder_of(name).join(READY).exists() {
        ensure!(owner.is_alive(), "cluster {name} ended before it was ready");
        ensure!(
            started.elapsed() < START,
            "cluster {name} was not ready within {START:?}"
        );
        std::thread::sleep(locks::PAUSE);
    }
    Ok(())
}

/// Where the service that owns a cluster writes what it does. Goes with the cluster.
pub fn log_file(name: &str) -> anyhow::Result<PathBuf> {
    state::check_name(name)?;
    state::make_root()?;
    Ok(state::folder_of(name).with_extension("log"))
}

/// Ends a cluster that a service of ours owns, and removes what one without an owner left. Returns whether there was any.
pub fn down(name: &str) -> anyhow::Result<bool> {
    setup::require_root()?;
    if let Some(owner) = Owner::of(name).filter(Owner::is_alive) {
        if owner.kind == OwnerKind::Program {
            bail!(
                "cluster {name} belongs to the program with process id {}, which has not ended",
                owner.pid
            );
        }
        owner.signal(rustix::process::Signal::TERM)?;
        let patience = Duration::from_mins(1);
        let started = Instant::now();
        while owner.is_alive() {
            if started.elapsed() > patience {
                say(format_args!(
                    "process {} did not end within {patience:?} and is killed",
                    owner.pid
                ));
                owner.signal(rustix::process::Signal::KILL)?;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // Waits for the janitor.
        state::remove_leftovers(name)?;
        return Ok(true);
    }
    state::remove_leftovers(name)
}

/// The clusters of this machine, each with its owner if that is alive, and its kubeconfig.
pub fn list() -> Vec<(String, Option<Owner>, PathBuf)> {
    let describe = |name: String| {
        let owner = Owner::of(&name).filter(Owner::is_alive);
        let kubeconfig = state::folder_of(&name).join("kubeconfig");
        (name, owner, kubeconfig)
    };
    state::names().into_iter().map(describe).collect()
}

async fn client_config(kubeconfig: &Path) -> anyhow::Result<Config> {
    install_crypto_provider();
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // The machine's proxy for the Internet does not know our networks.
    config.proxy_url = None;
    Ok(config)
}

fn install_crypto_provider() {
    // Fails if there is one already, which then serves as well.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// Has tokio make its means for signals here and now.
///
/// They are sockets, one pair per process, made with its first runtime: made by a runtime in the cluster's namespace, they
/// would hold that namespace and its cable as long as the process lives. On a thread of its own, for a runtime must not end
/// inside another, and who starts a cluster may be in one.
fn keep_signals_outside() -> anyhow::Result<()> {
    let make = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map(drop)
    };
    std::thread::scope(|scope| scope.spawn(make).join())
        .map_err(|_| anyhow!("the thread that makes tokio's means for signals panicked"))?
        .context("cannot make tokio's means for signals")
}

/// Runs a command to its end and returns what it printed; what it complained about is in the error.
fn run(mut command: Command, input: Option<&str>) -> anyhow::Result<String> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if let Some(mut pipe) = child.stdin.take() {
        // A program that does not read its input says why.
        let _ = pipe.write_all(input.unwrap_or_default().as_bytes());
    }
    let output = child.wait_with_output()?;
    let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    ensure!(
        output.status.success(),
        "{} {} failed: {}",
        command.get_program().display(),
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim(),
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
