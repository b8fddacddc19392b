//! Finds a cluster and the credentials for it.
//!
//! In the order that every Kubernetes client uses: what was asked for, `KUBECONFIG`, the service account of the pod we run
//! in, and the kubeconfig of the user. Tokens and authorities that rotate on disk are read again by the client itself.

use std::{
    collections::HashMap,
    env,
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
    time::Duration,
};

use ::kube::{
    Client, Config,
    api::ApiResource,
    config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use gatewright_api::Kind;

use super::discovery;

/// A request that gives no byte for so long is given up. Longer than a watch is silent when all is well.
const SILENCE: Duration = Duration::from_secs(130);
const CONNECT: Duration = Duration::from_secs(10);

/// Which cluster, if not the obvious one.
#[derive(Clone, Debug, Default)]
pub struct ConnectSettings {
    /// A kubeconfig to read instead of the usual places.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, if not its current one.
    pub context: Option<String>,
}

/// Why there is no cluster to work with.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No credentials in any of the usual places.
    #[error("no cluster: KUBECONFIG is not set, this is not a pod, and there is no {kubeconfig}", kubeconfig = .0.display())]
    Nowhere(PathBuf),
    /// The kubeconfig cannot be used.
    #[error("kubeconfig {place} cannot be used: {source}")]
    Kubeconfig {
        /// Where it was looked for.
        place: String,
        /// What is wrong.
        source: KubeconfigError,
    },
    /// The service account of this pod cannot be used.
    #[error("the service account of this pod cannot be used: {0}")]
    ServiceAccount(InClusterError),
    /// The settings make no client: a broken certificate, an exec plug-in that fails.
    #[error("no client for {server}: {source}")]
    Client {
        /// The API server.
        server: String,
        /// What is wrong.
        source: Box<::kube::Error>,
    },
}

impl ConnectError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Nowhere(_) => {
                "name a kubeconfig with --kubeconfig or KUBECONFIG, or serve a folder with `gatewright run --files DIR`"
            }
            Self::Kubeconfig { .. } => "`kubectl config get-contexts` lists what a kubeconfig offers",
            Self::ServiceAccount(_) => "the pod needs automountServiceAccountToken and a service account",
            Self::Client { .. } => "`kubectl cluster-info` with the same kubeconfig shows whether the credentials work",
        }
    }
}

/// A cluster, connected to lazily: nothing is sent before the first watch.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    server: String,
    namespace: String,
    served: Arc<RwLock<HashMap<Kind, &'static str>>>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            client: _,
            server,
            namespace,
            served,
        } = self;
        out.debug_struct("Cluster")
            .field("server", server)
            .field("namespace", namespace)
            .field("served", served)
            .finish()
    }
}

impl Cluster {
    /// A cluster reached through a client that somebody else made; `server` names it in messages.
    pub fn new(client: Client, server: impl Into<String>) -> Self {
        Self {
            namespace: client.default_namespace().to_owned(),
            client,
            server: server.into(),
            served: Arc::default(),
        }
    }

    /// The address of the API server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The namespace we run in, or that of the kubeconfig's context.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The client, for what is not offered here.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The version of a kind that this API server offers, as the watch found it; until then the one we prefer.
    pub(crate) fn served(&self, kind: Kind) -> ApiResource {
        let known = self.served.read().ok().and_then(|served| served.get(&kind).copied());
        discovery::resource(kind, known.or_else(|| kind.versions().first().copied()).unwrap_or("v1"))
    }

    pub(crate) fn set_served(&self, kind: Kind, version: &'static str) {
        if let Ok(mut served) = self.served.write() {
            served.insert(kind, version);
        }
    }
}

/// Finds the cluster.
pub async fn connect(settings: &ConnectSettings) -> Result<Cluster, ConnectError> {
    let mut config = configuration(settings).await?;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(SILENCE);
    config.write_timeout = Some(SILENCE);
    // Whoever asks has a back-off of its own and tells its state; a hidden one below it would only be silent.
    config.default_retry = false;
    let server = config.cluster_url.to_string();
    match Client::try_from(config) {
        Ok(client) => Ok(Cluster::new(client, server)),
        Err(source) => Err(ConnectError::Client {
            server,
            source: Box::new(source),
        }),
    }
}

async fn configuration(settings: &ConnectSettings) -> Result<Config, ConnectError> {
    let options = KubeConfigOptions {
        context: settings.context.clone(),
        ..KubeConfigOptions::default()
    };
    if let Some(path) = &settings.kubeconfig {
        return from_file(path, &options).await;
    }
    if let Some(places) = env::var_os("KUBECONFIG").filter(|places| !places.is_empty()) {
        let place = places.to_string_lossy().into_owned();
        return Config::from_kubeconfig(&options)
            .await
            .map_err(|source| ConnectError::Kubeconfig { place, source });
    }
    let is_pod = env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    if is_pod && settings.context.is_none() {
        return Config::incluster().map_err(ConnectError::ServiceAccount);
    }
    let home = env::home_dir().unwrap_or_default().join(".kube/config");
    if home.exists() {
        from_file(&home, &options).await
    } else {
        Err(ConnectError::Nowhere(home))
    }
}

async fn from_file(path: &Path, options: &KubeConfigOptions) -> Result<Config, ConnectError> {
    let failed = |source| ConnectError::Kubeconfig {
        place: path.display().to_string(),
        source,
    };
    let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
    Config::from_custom_kubeconfig(kubeconfig, options)
        .await
        .map_err(failed)
}
