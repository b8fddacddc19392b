//! A Kubernetes control plane without containers, for people: `up`, `down` and `status`.
//!
//! `up` leaves a service behind that owns the cluster, and returns when it is ready. `make cluster` and `make cluster-down`
//! call this.

use std::{
    env,
    fs::{self, File},
    io::{Read, Seek, Write},
    net::SocketAddr,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use gatewright_testbed::{
    cluster::{self, Channel, Cluster, Image, Images, Options, Owner, OwnerKind, Programs},
    say,
};

/// What the service says when the cluster can be used.
const READY: &str = "the cluster can be used";

/// A Kubernetes control plane without containers
#[derive(Parser)]
#[command(name = "cluster")]
struct Cli {
    #[command(subcommand)]
    order: Order,
}

#[derive(Subcommand)]
enum Order {
    /// Start a cluster, wait until it is ready and print the path of its kubeconfig
    Up(Up),
    /// Get the programs that clusters are made of, and say so if they are there already
    Setup,
    /// End a cluster and remove every trace of it
    Down {
        /// Which
        #[arg(long, default_value = "default")]
        name: String,
        /// All that run as services, and what others left
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// List the clusters of this machine
    Status,
    /// Own a cluster until a signal comes
    #[command(hide = true)]
    Serve(Up),
    /// Answer every question about a name with the same address
    #[command(hide = true)]
    Dns {
        #[arg(long, default_value = "0.0.0.0:53")]
        listen: SocketAddr,
        /// Settings of the server that this one stands for; not read
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        ignored: Vec<String>,
    },
}

#[derive(Args, Clone)]
struct Up {
    /// What to call it; clusters with different names run side by side
    #[arg(long, default_value = "default")]
    name: String,
    /// Which kinds of Gateway API it has: standard, experimental, or none
    #[arg(long, default_value = "experimental", value_parser = parse_channel)]
    gateway_api: GatewayApi,
    /// The program that stands for the images `gatewright` and `echo-basic`; else it is built
    #[arg(long, value_name = "PATH")]
    gatewright: Option<PathBuf>,
    /// A further image: a repository and the program that stands for it
    #[arg(long = "image", value_name = "REPOSITORY=PATH")]
    images: Vec<String>,
}

/// A channel, or none at all.
#[derive(Clone, Copy)]
struct GatewayApi(Option<Channel>);

fn parse_channel(text: &str) -> anyhow::Result<GatewayApi> {
    if text == "none" {
        Ok(GatewayApi(None))
    } else {
        text.parse().map(|channel| GatewayApi(Some(channel)))
    }
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().order {
        Order::Up(options) => up(&options),
        Order::Setup => cluster::set_up(),
        Order::Down { name, all } => down(name, all),
        Order::Status => status(),
        Order::Serve(options) => serve(options),
        Order::Dns { listen, ignored: _ } => cluster::dns::serve(listen),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Starts the service and repeats what it says until the cluster is ready.
fn up(options: &Up) -> anyhow::Result<()> {
    if let Some(owner) = Owner::of(&options.name).filter(Owner::is_alive) {
        say(format_args!(
            "cluster {} runs already, process {}",
            options.name, owner.pid
        ));
        cluster::wait_until_ready(&owner, &options.name)?;
        return announce(&options.name);
    }
    // In front of the person who waits, and who may interrupt it.
    cluster::set_up()?;
    let gatewright = match &options.gatewright {
        Some(path) => absolute(path)?,
        None => cluster::build_gatewright()?,
    };
    if cluster::list().iter().any(|(name, ..)| *name == options.name) {
        say(format_args!(
            "cleaning up what an earlier cluster {} left",
            options.name
        ));
        // Here, and not in the service, whose log would be taken for the earlier one's.
        cluster::down(&options.name)?;
    }
    let path = cluster::log_file(&options.name)?;
    let log = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut said = File::open(&path)?;
    let mut service = Command::new(env::current_exe()?);
    let channel = options.gateway_api.0.map_or("none", Channel::name);
    service.args(["serve", "--name", &options.name, "--gateway-api", channel]);
    service.arg("--gatewright").arg(gatewright);
    for image in &options.images {
        let (repository, program) = image.split_once('=').context("write REPOSITORY=PATH")?;
        service
            .arg("--image")
            .arg(format!("{repository}={}", absolute(Path::new(program))?.display()));
    }
    // A group of its own: what ends the terminal's programs does not end the cluster.
    service
        .process_group(0)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    let mut service = service.spawn().context("cannot start the service")?;
    let mut shown = 0;
    loop {
        let ended = service.try_wait()?;
        let mut text = String::new();
        said.rewind()?;
        said.read_to_string(&mut text)?;
        // Whole lines only.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for line in text.get(shown..whole).unwrap_or_default().lines() {
            if line == READY {
                return announce(&options.name);
            }
            say(line);
        }
        shown = whole;
        if let Some(status) = ended {
            bail!("the cluster could not be started: {status}");
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Prints the path of a cluster's kubeconfig, and tells people what they can do with it.
fn announce(name: &str) -> anyhow::Result<()> {
    let found = cluster::list().into_iter().find(|(found, ..)| found == name);
    let (_, _, kubeconfig) = found.context("the cluster is gone again")?;
    let kubeconfig = kubeconfig.display();
    let kubectl = Programs::set_up()?.kubectl;
    let folder = kubectl.parent().unwrap_or(&kubectl).display();
    let down = if name == "default" {
        "make cluster-down".to_owned()
    } else {
        format!("make cluster-down NAME={name}")
    };
    say(format_args!(
        "\nto use it:\n  export KUBECONFIG={kubeconfig}\n  export PATH={folder}:$PATH\n  kubectl get nodes\n\
         to remove every trace of it:\n  {down}\n"
    ));
    if env::vars().any(|(variable, _)| variable.to_lowercase() == "https_proxy") {
        say("hint: HTTPS_PROXY is set; kubectl needs `export NO_PROXY=10.244.0.0/16` to reach the cluster\n");
    }
    writeln!(std::io::stdout(), "{kubeconfig}")?;
    Ok(())
}

fn serve(options: Up) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before the cluster, so that a signal that comes while it starts is not lost.
    let (mut interrupt, mut terminate) = runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        anyhow::Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    })?;
    let gatewright = options.gatewright.context("the service needs --gatewright")?;
    let mut images = Images::ours(&gatewright).with("coredns", Image::name_server(env::current_exe()?));
    for image in &options.images {
        let (repository, program) = image.split_once('=').context("write REPOSITORY=PATH")?;
        let name = Path::new(program)
            .file_name()
            .context("a program needs a name")?
            .to_string_lossy();
        images = images.with(repository, Image::new(program, format!("/usr/local/bin/{name}")));
    }
    let cluster = Cluster::start(Options {
        name: options.name,
        gateway_api: options.gateway_api.0,
        images,
        owner: OwnerKind::Service,
        api_server_flags: Vec::new(),
    })?;
    say(READY);
    runtime.block_on(async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    });
    cluster.stop()
}

/// The service does not share this process's folder.
fn absolute(program: &Path) -> anyhow::Result<PathBuf> {
    fs::canonicalize(program).with_context(|| format!("there is no program {}", program.display()))
}

fn down(name: String, all: bool) -> anyhow::Result<()> {
    let names = if all {
        cluster::list().into_iter().map(|(name, ..)| name).collect()
    } else {
        vec![name]
    };
    for name in names {
        let text = if cluster::down(&name)? {
            "is gone"
        } else {
            "was not there"
        };
        say(format_args!("cluster {name} {text}"));
    }
    Ok(())
}

fn status() -> anyhow::Result<()> {
    let clusters = cluster::list();
    if clusters.is_empty() {
        say("no cluster");
    }
    for (name, owner, kubeconfig) in clusters {
        let state = match owner {
            Some(owner) => format!("running, process {}, kubeconfig {}", owner.pid, kubeconfig.display()),
            None => "left behind; the next start of this name or `cluster down` cleans up".to_owned(),
        };
        writeln!(std::io::stdout(), "{name}: {state}")?;
    }
    Ok(())
}
