//! A cluster of the testbed, with ways to ask its API server and to wait.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use gatewright_testbed::cluster::{Channel, Cluster, Options};
use kube::Client;
use serde_json::Value;
use tokio::runtime::Handle;

/// Machines that run tests are busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Where the clients of these tests run: a thread that lives as long as the process.
static RUNTIME: LazyLock<Handle> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let handle = runtime.handle().clone();
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    handle
});

/// The cluster that most tests share, with Gatewright installed as the documentation says. It ends with the process.
pub(crate) fn shared() -> &'static Bed {
    static SHARED: LazyLock<Bed> = LazyLock::new(|| {
        let bed = Bed::start("gatewright-tests", Some(Channel::Standard));
        crate::install::by_the_documentation(&bed);
        bed
    });
    &SHARED
}

/// The root of the source tree.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Waits until something is there.
pub(crate) fn eventually<T>(what: &str, look: impl FnMut() -> Result<T, String>) -> T {
    within(PATIENCE, what, look)
}

/// Waits so long until something is there.
pub(crate) fn within<T>(patience: Duration, what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(
                started.elapsed() < patience,
                "{what} did not come within {patience:?}: {seen}"
            ),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Ok if something holds, else what was seen.
#[expect(
    clippy::needless_pass_by_value,
    reason = "reads better without a reference at every call"
)]
pub(crate) fn holds(is_so: bool, seen: impl ToString) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(seen.to_string()) }
}

/// A request that the API server refused, or did not get.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) message: String,
}

/// A cluster.
pub(crate) struct Bed {
    pub(crate) cluster: Cluster,
    client: Client,
}

impl Bed {
    pub(crate) fn start(name: &str, gateway_api: Option<Channel>) -> Self {
        Self::start_with(name, gateway_api, Vec::new())
    }

    /// The same, with more flags of its API server.
    pub(crate) fn start_with(name: &str, gateway_api: Option<Channel>, api_server_flags: Vec<String>) -> Self {
        let mut options = Options::new(name, env!("CARGO_BIN_EXE_gatewright"));
        options.gateway_api = gateway_api;
        options.api_server_flags = api_server_flags;
        let cluster = Cluster::start(options).unwrap();
        let client = RUNTIME.block_on(cluster.client()).unwrap();
        Self { cluster, client }
    }

    /// Asks the API server, with a body of this type.
    pub(crate) fn request(&self, method: &str, path: &str, body: Option<(&str, &Value)>) -> Result<Value, Refusal> {
        RUNTIME.block_on(ask(self.client.clone(), method, path, body))
    }

    /// Asks for many things at once, and waits for all.
    pub(crate) fn create_all(&self, path: &str, objects: impl Iterator<Item = Value>) {
        let task = |object: Value| {
            let (client, path) = (self.client.clone(), path.to_owned());
            RUNTIME.spawn(async move { ask(client, "POST", &path, Some((JSON, &object))).await })
        };
        let objects: Vec<Value> = objects.collect();
        for chunk in objects.chunks(64) {
            let tasks: Vec<_> = chunk.iter().cloned().map(task).collect();
            for task in tasks {
                RUNTIME.block_on(task).unwrap().unwrap();
            }
        }
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value, Refusal> {
        self.request("GET", path, None)
    }

    pub(crate) fn create(&self, path: &str, object: &Value) -> Result<Value, Refusal> {
        self.request("POST", path, Some((JSON, object)))
    }

    pub(crate) fn patch(&self, path: &str, change: &Value) -> Result<Value, Refusal> {
        self.request("PATCH", path, Some(("application/merge-patch+json", change)))
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Value, Refusal> {
        self.request("DELETE", path, None)
    }

    /// The items of a list.
    pub(crate) fn list(&self, path: &str) -> Vec<Value> {
        match self.get(path).unwrap()["items"].take() {
            Value::Array(items) => items,
            other => panic!("{path} is no list: {other}"),
        }
    }

    /// Applies manifests as a user does; says what kubectl said.
    pub(crate) fn apply(&self, manifests: &str) -> Result<String, String> {
        self.kubectl_with(
            &["apply", "--server-side", "--force-conflicts", "--filename", "-"],
            manifests,
        )
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        self.kubectl_with(arguments, "")
    }

    fn kubectl_with(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let mut command = self.cluster.kubectl();
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        if output.status.success() {
            Ok(text(output.stdout))
        } else {
            Err(text(output.stderr))
        }
    }
}

const JSON: &str = "application/json";

async fn ask(client: Client, method: &str, path: &str, body: Option<(&str, &Value)>) -> Result<Value, Refusal> {
    let mut request = http::Request::builder().method(method).uri(path);
    if let Some((kind, _)) = body {
        request = request.header("content-type", kind);
    }
    let body = body.map_or_else(Vec::new, |(_, value)| value.to_string().into_bytes());
    let request = request.body(body).unwrap();
    client.request(request).await.map_err(|error| match error {
        kube::Error::Api(status) => Refusal {
            code: status.code,
            message: status.message.clone(),
        },
        other => Refusal {
            code: 0,
            message: other.to_string(),
        },
    })
}
