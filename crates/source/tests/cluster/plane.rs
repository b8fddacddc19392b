//! etcd and kube-apiserver on loopback, and ways to take the API server away.
//!
//! Both end with this program, however it ends: a shell stands between that kills them when the pipe to it closes.

use std::{
    env,
    fs::{self, File},
    io::{BufRead, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::Duration,
};

use gatewright_source::kube::{Cluster, ConnectSettings, connect};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::support;

/// The user who may do everything.
pub(crate) const ADMIN: &str = "admin";
/// Users who may do what a test lets them.
pub(crate) const USERS: &[&str] = &["reader", "scribe", "local", "replica"];

/// A control plane.
pub(crate) struct Plane {
    folder: TempDir,
    etcd_port: u16,
    etcd: Program,
    apiserver: Mutex<Option<Program>>,
    port: u16,
}

/// A program that dies with this one.
struct Program {
    shell: Child,
    pid: u32,
}

impl Program {
    fn start(name: &str, program: &Path, flags: &[String], folder: &Path) -> Self {
        let log = File::create(folder.join(format!("{name}.log"))).unwrap();
        let script = r#""$@" >&2 & pid=$!; echo $pid; read -r _; kill -9 $pid 2>/dev/null; wait $pid"#;
        let mut shell = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(program)
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self {
            shell,
            pid: line.trim().parse().unwrap(),
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.pid.to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A program that the testbed has set up.
fn program(folder: &str, name: &str) -> PathBuf {
    let cache = match env::var_os("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env::var_os("HOME").unwrap()).join(".cache"),
    };
    let mut folders: Vec<PathBuf> = fs::read_dir(cache.join("gatewright"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(folder))
        })
        .collect();
    folders.sort();
    let found = folders
        .into_iter()
        .rev()
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is not set up; hint: `make cluster` does it"))
}

impl Plane {
    /// The control plane that tests share, with Gateway API and our own kinds.
    pub(crate) async fn shared() -> &'static Plane {
        static PLANE: OnceCell<Plane> = OnceCell::const_new();
        PLANE
            .get_or_init(|| async {
                let plane = Plane::start().await;
                support::install_all(&plane.client().await).await;
                plane
            })
            .await
    }

    /// A control plane of one's own, without any custom kinds.
    pub(crate) async fn start() -> Plane {
        let folder = tempfile::tempdir().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        fs::write(folder.path().join("accounts.key"), key.serialize_pem()).unwrap();
        fs::write(folder.path().join("accounts.pub"), key.public_key_pem()).unwrap();
        let tokens = USERS.iter().map(|user| format!("{user}-token,{user},{user}\n"));
        let tokens = format!(
            "{ADMIN}-token,{ADMIN},{ADMIN},\"system:masters\"\n{}",
            tokens.collect::<String>()
        );
        fs::write(folder.path().join("tokens"), tokens).unwrap();
        let (etcd_port, peer_port) = (free_port(), free_port());
        let flags = [
            format!("--data-dir={}", folder.path().join("etcd").display()),
            format!("--listen-client-urls=http://127.0.0.1:{etcd_port}"),
            format!("--advertise-client-urls=http://127.0.0.1:{etcd_port}"),
            format!("--listen-peer-urls=http://127.0.0.1:{peer_port}"),
            format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer_port}"),
            format!("--initial-cluster=default=http://127.0.0.1:{peer_port}"),
            "--unsafe-no-fsync".to_owned(),
        ];
        let etcd = Program::start("etcd", &program("etcd-", "etcd"), &flags, folder.path());
        let plane = Plane {
            folder,
            etcd_port,
            etcd,
            apiserver: Mutex::new(None),
            port: free_port(),
        };
        plane.start_apiserver().await;
        plane
    }

    /// Starts the API server and waits until it is ready.
    pub(crate) async fn start_apiserver(&self) {
        let apiserver = self.spawn_apiserver(self.port);
        *self.apiserver.lock().unwrap() = Some(apiserver);
        self.wait_until_ready(self.port).await;
    }

    fn spawn_apiserver(&self, port: u16) -> Program {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let flags = [
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port),
            format!("--cert-dir={}", path(&format!("certificates-{port}"))),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            format!("--token-auth-file={}", path("tokens")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", path("accounts.pub")),
            format!("--service-account-signing-key-file={}", path("accounts.key")),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ];
        let program = program("kubernetes-", "kube-apiserver");
        Program::start(&format!("kube-apiserver-{port}"), &program, &flags, self.folder.path())
    }

    async fn wait_until_ready(&self, port: u16) {
        let client = self.cluster_at(port, ADMIN).await.client();
        let is_ready = async || {
            let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
            let asked = tokio::time::timeout(Duration::from_secs(5), client.request_text(request)).await;
            matches!(asked, Ok(Ok(text)) if text == "ok")
        };
        support::eventually_within(Duration::from_mins(2), "the API server is ready", is_ready).await;
    }

    /// Takes the API server away, as a crash does.
    pub(crate) fn kill_apiserver(&self) {
        let apiserver = self.apiserver.lock().unwrap().take().unwrap();
        apiserver.signal("-9");
    }

    /// Another API server on the same etcd, for as long as it is kept.
    pub(crate) async fn second_apiserver(&self) -> (impl Drop + use<>, kube::Client) {
        let port = free_port();
        let apiserver = self.spawn_apiserver(port);
        self.wait_until_ready(port).await;
        (apiserver, self.cluster_at(port, ADMIN).await.client())
    }

    /// Stops the API server from answering, or lets it go on.
    pub(crate) fn freeze_apiserver(&self, is_frozen: bool) {
        let apiserver = self.apiserver.lock().unwrap();
        apiserver
            .as_ref()
            .unwrap()
            .signal(if is_frozen { "-STOP" } else { "-CONT" });
    }

    /// The cluster, as a user.
    pub(crate) async fn cluster_as(&self, user: &str) -> Cluster {
        self.cluster_at(self.port, user).await
    }

    /// The cluster, for who may do everything.
    pub(crate) async fn cluster(&self) -> Cluster {
        self.cluster_as(ADMIN).await
    }

    /// A client, for who may do everything.
    pub(crate) async fn client(&self) -> kube::Client {
        self.cluster().await.client()
    }

    async fn cluster_at(&self, port: u16, user: &str) -> Cluster {
        let kubeconfig = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "nowhere",
            "clusters": [{"name": "test", "cluster": {
                "server": format!("https://127.0.0.1:{port}"), "insecure-skip-tls-verify": true}}],
            "users": [{"name": user, "user": {"token": format!("{user}-token")}}],
            "contexts": [{"name": user, "context": {"cluster": "test", "user": user, "namespace": "default"}}],
        });
        // Tests ask at the same time: each has a file of its own.
        let path = tempfile::NamedTempFile::new_in(self.folder.path()).unwrap();
        fs::write(&path, kubeconfig.to_string()).unwrap();
        let settings = ConnectSettings {
            kubeconfig: Some(path.path().to_owned()),
            context: Some(user.to_owned()),
        };
        connect(&settings).await.unwrap()
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        // The API server first: it would only complain.
        drop(self.apiserver.lock().map(|mut apiserver| apiserver.take()));
        self.etcd.signal("-9");
    }
}
