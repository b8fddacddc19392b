//! Joins source, spine, proxy, admin API and probes into one running process. The only place that wires.
//!
//! Threads: the proxy's workers carry traffic; the spine has a thread of its own, so that planning a large world keeps
//! nobody from a health answer and costs no lease; everything else runs on the caller's runtime.

mod proxy_metrics;

use std::fmt::Write as _;
use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    thread,
    time::Duration,
};

use arc_swap::ArcSwap;
use axum::Router;
use gatewright_api::config::Entry;
use gatewright_ir::SessionKey;
use gatewright_plan::PlanSettings;
use gatewright_proxy::{Proxy, ProxySettings};
use gatewright_source::files::{self, FilesError, Rescan, WatchOptions};
use jiff::Timestamp;
use tokio::{net::TcpListener, sync::oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    addresses::Bind,
    admin::{self, Admin},
    cluster::{self, ClusterSettings, Leave, Membership, Monitor},
    failure::Failure,
    logs::LogControl,
    probes::{self, Probes},
    readiness::Readiness,
    run::ServeArgs,
    spine::{Course, Feed, Spine},
    view::{Folder, SharedView, View},
};
use proxy_metrics::ProxyMetrics;

/// What to run.
pub(crate) struct AppSettings {
    source: SourceSettings,
    plan: PlanSettings,
    workers: usize,
    admin: Bind,
    health: Bind,
    metrics: Bind,
}

/// Where declared objects come from.
pub(crate) enum SourceSettings {
    /// A folder of files.
    Folder(PathBuf),
    /// A cluster.
    Cluster(ClusterSettings),
}

impl AppSettings {
    pub(crate) fn new(source: SourceSettings, host_addresses: Vec<IpAddr>, args: &ServeArgs) -> Self {
        let (allow_local_backends, default_entry, zone) = match &source {
            SourceSettings::Folder(_) => (true, Entry::Host, None),
            // There a loopback address would lead into the pod of the proxy itself.
            SourceSettings::Cluster(cluster) => (false, cluster.default_entry, cluster.zone.as_deref().map(Into::into)),
        };
        Self {
            source,
            plan: PlanSettings {
                controller_name: args.controller_name.as_str().into(),
                host_addresses,
                allow_local_backends,
                default_entry,
                zone,
                session_key: session_key(),
            },
            workers: args.workers,
            admin: args.admin,
            health: args.health_probe_bind_address,
            metrics: args.metrics_bind_address,
        }
    }
}

/// A secret of this process for the tokens of session persistence; in a cluster that of all replicas takes its place.
fn session_key() -> SessionKey {
    let mut secret = [0; 32];
    // It fails only where the operating system has no randomness, and then TLS would not work either.
    if rustls::crypto::aws_lc_rs::default_provider()
        .secure_random
        .fill(&mut secret)
        .is_err()
    {
        tracing::error!("no randomness: tokens of session persistence can be forged");
    }
    SessionKey::new(secret)
}

/// The running process.
pub(crate) struct App {
    view: SharedView,
    readiness: Readiness,
    /// None in a cluster.
    rescan: Option<Rescan>,
    /// None with files.
    membership: Option<Membership>,
    leave: Leave,
    stop_spine: CancellationToken,
    spine_ended: oneshot::Receiver<()>,
    proxy: Arc<Proxy>,
    proxy_metrics: Arc<ProxyMetrics>,
}

impl App {
    /// Opens the sockets for operators, starts the proxy without listeners, and begins to read the source.
    pub(crate) async fn start(settings: AppSettings, logs: LogControl) -> Result<Self, Failure> {
        let doors = Doors::open(&settings).await?;
        let controller: Arc<str> = settings.plan.controller_name.clone();
        let source = Source::open(settings.source, &controller).await?;
        let proxy_settings = ProxySettings {
            workers: settings.workers,
        };
        let (proxy, facts) =
            Proxy::start(proxy_settings).map_err(|error| Failure::new(format!("cannot start the proxy: {error}")))?;
        let proxy = Arc::new(proxy);
        let proxy_metrics = Arc::new(ProxyMetrics::of(&proxy));
        let readiness = Readiness::new(source.awaited);
        let view: SharedView = Arc::new(ArcSwap::from_pointee(View::default()));
        let spine = Spine::new(
            settings.plan,
            Arc::clone(&proxy),
            source.feed,
            source.folder,
            Arc::clone(&view),
            readiness.clone(),
        );
        let stop_spine = CancellationToken::new();
        let leave = Leave::default();
        let course = Course {
            leave: leave.clone(),
            stop: stop_spine.clone(),
        };
        let spine_ended = spawn_spine(move || spine.run(facts, course))?;
        let admin = Admin {
            view: Arc::clone(&view),
            readiness: readiness.clone(),
            controller,
            logs,
            cluster: source.monitor.clone(),
        };
        let reader = Arc::clone(&proxy_metrics);
        let probes = Probes {
            readiness: readiness.clone(),
            view: Arc::clone(&view),
            read_metrics: Arc::new(move || reader.read()),
            started: Timestamp::now(),
            cluster: source.monitor,
        };
        doors.serve(&admin, &probes);
        Ok(Self {
            view,
            readiness,
            rescan: source.rescan,
            membership: source.membership,
            leave,
            stop_spine,
            spine_ended,
            proxy,
            proxy_metrics,
        })
    }

    /// Looks at the files now. A cluster is always looked at.
    pub(crate) fn rescan(&self) {
        if let Some(rescan) = &self.rescan {
            tracing::info!("looking at the files again");
            rescan.ask();
        } else {
            tracing::info!("the cluster is followed all the time; there is nothing to read again");
        }
    }

    /// Waits until the first plan is served; false if it cannot be.
    pub(crate) async fn started(&self) {
        self.readiness.started().await;
    }

    /// What is served.
    pub(crate) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Ends in order: no longer ready, gone from the cluster, no more changes, no more connections, the open ones as long as
    /// they may.
    pub(crate) async fn stop(self, grace: Duration) {
        self.readiness.draining();
        if let Some(membership) = self.membership {
            self.proxy.leave();
            membership.leave(&self.leave).await;
        }
        self.stop_spine.cancel();
        // An error means that the spine's thread has ended, which is what is awaited.
        let _ = self.spine_ended.await;
        self.proxy_metrics.keep_last();
        if let Ok(proxy) = Arc::try_unwrap(self.proxy) {
            proxy.shutdown(grace).await;
        } else {
            // Cannot be: the spine, the only other holder, has ended.
            tracing::error!("the proxy is still in use; open connections are cut off");
        }
    }
}

/// The source as the application needs it.
struct Source {
    feed: Feed,
    folder: Option<Folder>,
    rescan: Option<Rescan>,
    monitor: Option<Monitor>,
    membership: Option<Membership>,
    /// What keeps the process from being ready at first.
    awaited: &'static str,
}

impl Source {
    async fn open(settings: SourceSettings, controller: &str) -> Result<Self, Failure> {
        match settings {
            SourceSettings::Folder(directory) => {
                let watch =
                    files::watch(&directory, WatchOptions::default()).map_err(|error| folder_failure(&error))?;
                let folder = Folder {
                    directory,
                    ..Folder::default()
                };
                Ok(Self {
                    rescan: Some(watch.rescan()),
                    feed: Feed::Folder(watch),
                    folder: Some(folder),
                    monitor: None,
                    membership: None,
                    awaited: "the files have not been read yet",
                })
            }
            SourceSettings::Cluster(settings) => {
                let joined = cluster::join(&settings, controller).await?;
                Ok(Self {
                    feed: Feed::Cluster(Box::new(joined.link)),
                    folder: None,
                    rescan: None,
                    monitor: Some(joined.monitor),
                    membership: Some(joined.membership),
                    awaited: "the cluster is not wholly known yet",
                })
            }
        }
    }
}

/// Runs the spine on a thread of its own; the receiver ends when it does.
fn spawn_spine<F>(run: impl FnOnce() -> F + Send + 'static) -> Result<oneshot::Receiver<()>, Failure>
where
    F: Future<Output = ()>,
{
    let runtime = crate::run::control_runtime()?;
    let (ended, receiver) = oneshot::channel();
    let body = move || {
        runtime.block_on(run());
        // The future, and with it the proxy's handle, is gone; nobody may be waiting.
        let _ = ended.send(());
    };
    thread::Builder::new()
        .name("spine".to_owned())
        .spawn(body)
        .map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
    Ok(receiver)
}

pub(crate) fn folder_failure(error: &FilesError) -> Failure {
    let mut message = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        let _ = write!(message, ": {source}");
    }
    Failure::usage(message).hint("name a folder with Gateway API objects in .yaml, .yml or .json files")
}

/// The sockets for operators.
struct Doors {
    admin: Option<Door>,
    health: Option<Door>,
    /// None when metrics share the probes' address.
    metrics: Option<Door>,
    is_shared: bool,
}

type Door = (TcpListener, SocketAddr);

impl Doors {
    async fn open(settings: &AppSettings) -> Result<Self, Failure> {
        let admin = open(settings.admin, "--admin").await?;
        if let Some((_, address)) = &admin
            && !address.ip().is_loopback()
        {
            tracing::warn!(%address, "the admin API is open to other hosts, and it asks for no password");
        }
        let is_shared = settings.health == settings.metrics;
        let health = open(settings.health, "--health-probe-bind-address").await?;
        let metrics = if is_shared { Bind(None) } else { settings.metrics };
        let metrics = open(metrics, "--metrics-bind-address").await?;
        Ok(Self {
            admin,
            health,
            metrics,
            is_shared,
        })
    }

    fn serve(self, admin: &Admin, probes: &Probes) {
        if let Some((listener, address)) = self.admin {
            tracing::info!(%address, "admin: `gatewright status` reads here");
            spawn_server(listener, admin::router(admin.clone(), address));
        }
        if let Some((listener, address)) = self.health {
            let mut router = probes::health(probes.clone());
            if self.is_shared {
                router = router.merge(probes::metrics(probes.clone()));
                tracing::info!(%address, "probes: /healthz, /readyz and /metrics");
            } else {
                tracing::info!(%address, "probes: /healthz and /readyz");
            }
            spawn_server(listener, router);
        }
        if let Some((listener, address)) = self.metrics {
            tracing::info!(%address, "metrics: /metrics");
            spawn_server(listener, probes::metrics(probes.clone()));
        }
    }
}

async fn open(bind: Bind, flag: &str) -> Result<Option<Door>, Failure> {
    let Some(address) = bind.0 else { return Ok(None) };
    let fail = |error: std::io::Error| {
        Failure::new(format!("cannot listen on {address} ({flag}): {error}")).hint(format!(
            "free the port, or choose another address with `{flag} ADDRESS`"
        ))
    };
    let listener = TcpListener::bind(address).await.map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    Ok(Some((listener, bound)))
}

fn spawn_server(listener: TcpListener, router: Router) {
    tokio::spawn(async move {
        // Never ends by itself.
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "a server for operators ended");
        }
    });
}
