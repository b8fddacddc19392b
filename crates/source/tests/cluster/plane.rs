//! etcd and kube-apiserver on loopback, and ways to take the API server away.
//!
//! Both end with this program, however it ends: a shell stands between that kills them when the pipe to it closes. That of
//! etcd, which ends last, also removes their folder: what tests share is never dropped.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::Duration,
};

use gatewright_source::kube::{Cluster, ConnectSettings, connect};
use gatewright_testbed::cluster::Programs;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::support;

/// The user who may do everything.
pub(crate) const ADMIN: &str = "admin";
/// Users who may do what a test lets them.
pub(crate) const USERS: &[&str] = &["reader", "scribe", "local", "replica", TENANT];
/// The one of them whose requests are kept.
pub(crate) const TENANT: &str = "tenant";

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
    /// Starts a program that logs into `folder`; `gone` is removed after it.
    fn start(name: &str, program: &Path, flags: &[String], folder: &Path, gone: &Path) -> Self {
        let log = File::create(folder.join(format!("{name}.log"))).unwrap();
        let script = r#""$@" >&2 & pid=$!; echo $pid; read -r _; kill -9 $pid 2>/dev/null; wait $pid; rm -rf "$GONE""#;
        let mut shell = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(program)
            .args(flags)
            .env("GONE", gone)
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

/// The programs, set up where they are missing. Once: tests ask at the same time.
async fn programs() -> &'static Programs {
    static PROGRAMS: OnceCell<Programs> = OnceCell::const_new();
    PROGRAMS
        .get_or_init(|| async {
            tokio::task::spawn_blocking(|| Programs::set_up().unwrap())
                .await
                .unwrap()
        })
        .await
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
        let policy = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "users": [TENANT]}, {"level": "None"}]});
        fs::write(folder.path().join("audit-policy"), policy.to_string()).unwrap();
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
        let etcd = Program::start("etcd", &programs().await.etcd, &flags, folder.path(), folder.path());
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
        let apiserver = self.spawn_apiserver(self.port).await;
        *self.apiserver.lock().unwrap() = Some(apiserver);
        self.wait_until_ready(self.port).await;
    }

    async fn spawn_apiserver(&self, port: u16) -> Program {
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
            format!("--audit-policy-file={}", path("audit-policy")),
            format!("--audit-log-path={}", path("audit")),
        ];
        let program = &programs().await.apiserver;
        let certificates = self.folder.path().join(format!("certificates-{port}"));
        Program::start(
            &format!("kube-apiserver-{port}"),
            program,
            &flags,
            self.folder.path(),
            &certificates,
        )
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
        let apiserver = self.spawn_apiserver(port).await;
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

    /// What [`TENANT`] has asked for, as verb, resource and namespace, with the answer's code.
    pub(crate) fn asked(&self) -> Vec<(String, u64)> {
        let log = fs::read_to_string(self.folder.path().join("audit")).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let asked = log.lines().map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            let object = &event["objectRef"];
            let (verb, resource, namespace) = (&event["verb"], &object["resource"], &object["namespace"]);
            let request = format!("{} {} {}", text(verb), text(resource), text(namespace));
            (request, event["responseStatus"]["code"].as_u64().unwrap())
        });
        asked.collect()
    }

    async fn cluster_at(&self, port: u16, user: &str) -> Cluster {
        let kubeconfig = json!({
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
