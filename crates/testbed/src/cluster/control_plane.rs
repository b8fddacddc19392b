//! etcd, kube-apiserver and kube-controller-manager, started in this order and waited for.
//!
//! Runs on the thread that lives in the cluster's namespace. The API server can be taken away and brought back, for tests
//! of what goes on without it.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use rustix::process::Signal;
use tokio::{net::TcpStream, time::sleep};

use super::{Programs, certificates::Certificates, daemon::Daemon};

/// The port of the API server.
pub(super) const API_PORT: u16 = 6443;

const ETCD: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 2379);

/// How long a program may take until it serves; a machine may be busy.
pub(super) const START: Duration = Duration::from_mins(3);

/// How often a program is asked whether it serves.
const PAUSE: Duration = Duration::from_millis(50);

/// The running control plane.
#[derive(Debug)]
pub(super) struct ControlPlane {
    settings: Settings,
    // In the order in which they are to end.
    controller_manager: Option<Daemon>,
    apiserver: Option<Daemon>,
    etcd: Daemon,
}

/// What a control plane is made of.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) programs: Programs,
    pub(super) certificates: Certificates,
    /// The administrator's.
    pub(super) kubeconfig: PathBuf,
    /// Where it serves.
    pub(super) address: Ipv4Addr,
    /// The cluster's folder.
    pub(super) folder: PathBuf,
    /// Flags of the API server beside its usual ones.
    pub(super) api_server_flags: Vec<String>,
}

impl ControlPlane {
    /// Starts etcd and the API server, and waits until it serves.
    pub(super) async fn start(settings: Settings, client: &Client) -> anyhow::Result<Self> {
        let flags = etcd_flags(&settings.folder);
        let mut etcd = Daemon::start("etcd", &settings.programs.etcd, &flags, &settings.logs())?;
        let started = Instant::now();
        while TcpStream::connect(ETCD).await.is_err() {
            etcd.check()?;
            if started.elapsed() > START {
                bail!("etcd did not listen within {START:?}:\n{}", etcd.last_words());
            }
            sleep(PAUSE).await;
        }
        let mut control_plane = Self {
            settings,
            controller_manager: None,
            apiserver: None,
            etcd,
        };
        control_plane.start_api_server(client).await?;
        Ok(control_plane)
    }

    /// Starts the controllers.
    pub(super) fn start_controllers(&mut self) -> anyhow::Result<()> {
        let settings = &self.settings;
        let flags = controller_manager_flags(settings);
        let program = &settings.programs.controller_manager;
        self.controller_manager = Some(Daemon::start(
            "kube-controller-manager",
            program,
            &flags,
            &settings.logs(),
        )?);
        Ok(())
    }

    /// Waits until the controllers have made what pods need: their namespace's default ServiceAccount.
    pub(super) async fn wait_for_controllers(&mut self, client: &Client) -> anyhow::Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
        let started = Instant::now();
        while accounts.get_opt("default").await?.is_none() {
            self.check()?;
            if started.elapsed() > START {
                bail!("the controllers made no default ServiceAccount within {START:?}");
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Starts the API server, if it is not running, and waits until it serves.
    pub(super) async fn start_api_server(&mut self, client: &Client) -> anyhow::Result<()> {
        if self.apiserver.is_none() {
            let settings = &self.settings;
            let flags = apiserver_flags(settings);
            let program = &settings.programs.apiserver;
            self.apiserver = Some(Daemon::start("kube-apiserver", program, &flags, &settings.logs())?);
        }
        let started = Instant::now();
        while !is_ready(client).await {
            self.check()?;
            if started.elapsed() > START {
                let said = self.apiserver.as_ref().map(Daemon::last_words).unwrap_or_default();
                bail!("kube-apiserver was not ready within {START:?}:\n{said}");
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Takes the API server away, as a crash would.
    pub(super) fn stop_api_server(&mut self) {
        self.apiserver = None;
    }

    /// Freezes the API server, which then answers nothing and refuses nothing, or lets it go on.
    pub(super) fn freeze_api_server(&mut self, is_frozen: bool) -> anyhow::Result<()> {
        let signal = if is_frozen { Signal::STOP } else { Signal::CONT };
        self.apiserver
            .as_ref()
            .context("the API server is not running")?
            .signal(signal)
    }

    /// Fails if a program has ended that should run.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        self.etcd.check()?;
        self.apiserver.as_mut().map_or(Ok(()), Daemon::check)?;
        self.controller_manager.as_mut().map_or(Ok(()), Daemon::check)
    }

    /// The controllers give up when they cannot reach the API server for a while; then they are started again.
    pub(super) fn restart_controllers_if_ended(&mut self) -> anyhow::Result<()> {
        let has_ended = self
            .controller_manager
            .as_mut()
            .is_some_and(|daemon| daemon.check().is_err());
        if has_ended && self.apiserver.is_some() {
            self.start_controllers()?;
        }
        Ok(())
    }
}

impl Settings {
    fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }
}

async fn is_ready(client: &Client) -> bool {
    let Ok(request) = hyper::Request::get("/readyz").body(Vec::new()) else {
        return false;
    };
    let answer = tokio::time::timeout(Duration::from_secs(5), client.request_text(request)).await;
    matches!(answer, Ok(Ok(text)) if text == "ok")
}

fn etcd_flags(folder: &Path) -> Vec<String> {
    let data = folder.join("etcd");
    vec![
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls=http://{ETCD}"),
        format!("--advertise-client-urls=http://{ETCD}"),
        "--listen-peer-urls=http://127.0.0.1:2380".to_owned(),
        "--initial-advertise-peer-urls=http://127.0.0.1:2380".to_owned(),
        "--initial-cluster=default=http://127.0.0.1:2380".to_owned(),
        // What is lost when the machine goes down is of no use afterwards anyway.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn apiserver_flags(settings: &Settings) -> Vec<String> {
    let Settings {
        programs: _,
        certificates,
        kubeconfig: _,
        address,
        folder,
        api_server_flags,
    } = settings;
    let (key, public_key) = (
        &certificates.service_account_key,
        &certificates.service_account_public_key,
    );
    let mut flags = vec![
        format!("--etcd-servers=http://{ETCD}"),
        // Pods have networks of their own, so the loopback address would be theirs.
        format!("--bind-address={address}"),
        // Without it the server looks for a default route, finds none and ends.
        format!("--advertise-address={address}"),
        format!("--secure-port={API_PORT}"),
        format!("--cert-dir={}", folder.join("apiserver").display()),
        format!("--tls-cert-file={}", certificates.serving.certificate.file.display()),
        format!("--tls-private-key-file={}", certificates.serving.key.file.display()),
        format!("--client-ca-file={}", certificates.authority.file.display()),
        format!(
            "--kubelet-certificate-authority={}",
            certificates.authority.file.display()
        ),
        format!(
            "--kubelet-client-certificate={}",
            certificates.administrator.certificate.file.display()
        ),
        format!("--kubelet-client-key={}", certificates.administrator.key.file.display()),
        // There is no name server that knows the node.
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", public_key.display()),
        format!("--service-account-signing-key-file={}", key.display()),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--allow-privileged".to_owned(),
        // The address of the one server is known to everybody; keeping a list of servers would only cost time.
        "--endpoint-reconciler-type=none".to_owned(),
        // Tests that write a thousand objects at once must not be slowed down by fairness between tenants.
        "--max-requests-inflight=2000".to_owned(),
        "--max-mutating-requests-inflight=1000".to_owned(),
    ];
    flags.extend_from_slice(api_server_flags);
    flags
}

fn controller_manager_flags(settings: &Settings) -> Vec<String> {
    let kubeconfig = settings.kubeconfig.display();
    let certificates = &settings.certificates;
    vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!(
            "--service-account-private-key-file={}",
            certificates.service_account_key.display()
        ),
        format!("--root-ca-file={}", certificates.authority.file.display()),
        format!("--cert-dir={}", settings.folder.join("controller-manager").display()),
        "--bind-address=127.0.0.1".to_owned(),
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials=true".to_owned(),
        // The defaults are for clusters whose API server is shared with many others.
        "--kube-api-qps=200".to_owned(),
        "--kube-api-burst=400".to_owned(),
    ]
}
