//! What tests share: a cluster, and ways to wait and to ask.

use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    path::PathBuf,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use gatewright_testbed::cluster::{Cluster, Image, Images, Options, build_gatewright};
use serde_json::Value;

/// Machines that run tests are busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) static GATEWRIGHT: LazyLock<PathBuf> = LazyLock::new(|| build_gatewright().unwrap());

static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| {
    // Tests of one run after the other; a run that was killed is cleaned up after by the next.
    let mut options = Options::new("cluster-tests", &*GATEWRIGHT);
    options.images = images();
    Cluster::start(options).unwrap()
});

/// The cluster that tests share. It ends with the process.
pub(crate) fn cluster() -> &'static Cluster {
    &CLUSTER
}

/// Ours, a shell, and a name server.
pub(crate) fn images() -> Images {
    Images::ours(&*GATEWRIGHT)
        .with("shell", Image::new("/bin/sh", "/shell"))
        .with("coredns", Image::name_server(env!("CARGO_BIN_EXE_cluster")))
}

/// Waits until something is there.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(
                started.elapsed() < PATIENCE,
                "{what} did not come within {PATIENCE:?}: {seen}"
            ),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// A namespace of a test's own.
pub(crate) struct Namespace<'a> {
    cluster: &'a Cluster,
    name: &'static str,
}

impl Namespace<'static> {
    /// In the cluster that tests share.
    pub(crate) fn make(name: &'static str) -> Self {
        Namespace::make_in(cluster(), name)
    }
}

impl<'a> Namespace<'a> {
    pub(crate) fn make_in(cluster: &'a Cluster, name: &'static str) -> Self {
        cluster.run_kubectl(["create", "namespace", name]).unwrap();
        let namespace = Self { cluster, name };
        eventually("the default ServiceAccount", || {
            namespace.try_kubectl(["get", "serviceaccount", "default"])
        });
        namespace
    }

    pub(crate) fn apply(&self, manifests: &str) {
        let mut command = self.cluster.kubectl();
        command.args(["apply", "--namespace", self.name, "--filename", "-"]);
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(manifests.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{manifests}");
    }

    pub(crate) fn try_kubectl<const N: usize>(&self, arguments: [&str; N]) -> Result<String, String> {
        let mut command = self.cluster.kubectl();
        let output = command
            .args(["--namespace", self.name])
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        if output.status.success() {
            Ok(text(output.stdout))
        } else {
            Err(text(output.stderr))
        }
    }

    pub(crate) fn kubectl<const N: usize>(&self, arguments: [&str; N]) -> String {
        self.try_kubectl(arguments).unwrap()
    }

    /// A command to be run beside others.
    pub(crate) fn command<const N: usize>(&self, arguments: [&str; N]) -> std::process::Command {
        let mut command = self.cluster.kubectl();
        command.args(["--namespace", self.name]).args(arguments);
        command
    }

    pub(crate) fn get(&self, kind: &str, name: &str) -> Value {
        serde_json::from_str(&self.kubectl(["get", kind, name, "--output=json"])).unwrap()
    }

    /// Waits until an object has something at a place.
    pub(crate) fn until(&self, kind: &str, name: &str, pointer: &str, holds: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("{kind} {name} {pointer}"), || {
            let text = self.try_kubectl(["get", kind, name, "--output=json"])?;
            let object: Value = serde_json::from_str(&text).unwrap();
            let found = object.pointer(pointer).cloned().unwrap_or(Value::Null);
            if holds(&found) {
                Ok(object)
            } else {
                Err(object["status"].to_string())
            }
        })
    }

    /// Waits until a log has a text in it.
    pub(crate) fn until_log(&self, pod: &str, text: &str) -> String {
        eventually(&format!("{text:?} in the log of {pod}"), || {
            let log = self.try_kubectl(["logs", pod])?;
            if log.contains(text) { Ok(log) } else { Err(log) }
        })
    }

    /// Waits for the address of a LoadBalancer.
    pub(crate) fn address(&self, service: &str) -> IpAddr {
        let pointer = "/status/loadBalancer/ingress/0/ip";
        let service = self.until("service", service, pointer, Value::is_string);
        service.pointer(pointer).unwrap().as_str().unwrap().parse().unwrap()
    }
}

/// Asks for a path over HTTP. Says what went wrong, or the code and the body.
pub(crate) fn http(address: SocketAddr, path: &str) -> Result<(u16, String), String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(failed)?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: test.example.com\r\nConnection: close\r\n\r\n"
    )
    .map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    let code = answer.split_whitespace().nth(1).and_then(|code| code.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    code.zip(body).ok_or(answer)
}

/// Asks an echo backend until it answers, and returns what it says about itself.
pub(crate) fn echo(address: SocketAddr) -> Value {
    eventually(&format!("an answer of {address}"), || match http(address, "/") {
        Ok((200, body)) => serde_json::from_str(&body).map_err(|_| body),
        other => Err(format!("{other:?}")),
    })
}
