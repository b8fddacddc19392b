//! Probes: whether a container has started, is ready, and is alive.
//!
//! They run for one run of a container and change what is reported about it; a container that has not started in time or
//! is no longer alive is the caller's to end.

use std::{
    collections::BTreeMap,
    fmt::Write,
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use k8s_openapi::{
    api::core::v1::{Container, HTTPGetAction, Probe},
    apimachinery::pkg::util::intstr::IntOrString,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{PodContext, Slot, sandbox};
use crate::cluster::node::events::Tone;

/// How often a container is probed that has not been ready yet: whole periods would only make tests wait.
const EAGER: Duration = Duration::from_millis(250);

/// One run of a container, as its probes see it.
pub(super) struct Probed<'a> {
    pub(super) pod: &'a PodContext,
    pub(super) slot: Slot,
    pub(super) container: &'a Container,
    pub(super) environment: &'a BTreeMap<String, String>,
    pub(super) process: u32,
}

impl Probed<'_> {
    /// Probes until the container must be ended, and says why.
    pub(super) async fn watch_over(&self) -> String {
        if let Some(probe) = &self.container.startup_probe
            && let Err(message) = self.until_started(probe).await
        {
            return message;
        }
        let is_ready = self.container.readiness_probe.is_none();
        self.pod.change(self.slot, |view| {
            view.is_started = true;
            view.is_ready = is_ready;
        });
        let readiness = async {
            match &self.container.readiness_probe {
                Some(probe) => self.keep_readiness(probe).await,
                None => std::future::pending().await,
            }
        };
        let liveness = async {
            match &self.container.liveness_probe {
                Some(probe) => self.until_dead(probe).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = readiness => String::new(),
            message = liveness => message,
        }
    }

    async fn until_started(&self, probe: &Probe) -> Result<(), String> {
        let timing = Timing::of(probe);
        sleep(timing.delay).await;
        let deadline = Instant::now() + timing.period * timing.failures;
        loop {
            match self.check(probe, timing.patience).await {
                Ok(()) => return Ok(()),
                Err(message) if Instant::now() > deadline => return Err(self.complain("Startup", &message).await),
                Err(_) => sleep(timing.period.min(EAGER)).await,
            }
        }
    }

    async fn keep_readiness(&self, probe: &Probe) {
        let timing = Timing::of(probe);
        let (mut is_ready, mut has_been_ready, mut streak) = (false, false, 0);
        sleep(timing.delay).await;
        loop {
            let outcome = self.check(probe, timing.patience).await;
            streak = if outcome.is_ok() == is_ready { 0 } else { streak + 1 };
            let needed = if is_ready { timing.failures } else { timing.successes };
            if streak >= needed {
                (is_ready, streak) = (!is_ready, 0);
                has_been_ready |= is_ready;
                self.pod.change(self.slot, |view| view.is_ready = is_ready);
                if let Err(message) = &outcome {
                    self.complain("Readiness", message).await;
                }
            }
            sleep(if has_been_ready {
                timing.period
            } else {
                timing.period.min(EAGER)
            })
            .await;
        }
    }

    async fn until_dead(&self, probe: &Probe) -> String {
        let timing = Timing::of(probe);
        let mut failures = 0;
        sleep(timing.delay).await;
        loop {
            match self.check(probe, timing.patience).await {
                Ok(()) => failures = 0,
                Err(message) => {
                    failures += 1;
                    let message = self.complain("Liveness", &message).await;
                    if failures >= timing.failures {
                        return message;
                    }
                }
            }
            sleep(timing.period).await;
        }
    }

    async fn complain(&self, what: &str, message: &str) -> String {
        let message = format!("{what} probe failed: {message}");
        self.pod.tell(Tone::Warning, "Unhealthy", &message).await;
        message
    }

    async fn check(&self, probe: &Probe, patience: Duration) -> Result<(), String> {
        let check = async {
            if let Some(action) = &probe.http_get {
                get(action, self.address(action.host.as_deref(), &action.port)?).await
            } else if let Some(action) = &probe.tcp_socket {
                let address = self.address(action.host.as_deref(), &action.port)?;
                TcpStream::connect(address)
                    .await
                    .map(drop)
                    .map_err(|error| format!("{address}: {error}"))
            } else if let Some(action) = &probe.exec {
                let words = action.command.clone().unwrap_or_default();
                run(self.process, self.environment, &words).await
            } else {
                Err("this node knows httpGet, tcpSocket and exec only".to_owned())
            }
        };
        timeout(patience, check)
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {patience:?}")))
    }

    fn address(&self, host: Option<&str>, port: &IntOrString) -> Result<SocketAddr, String> {
        let ip = match host {
            Some(host) => host.parse().map_err(|_| format!("{host} is no address"))?,
            None => IpAddr::from(self.pod.network.address),
        };
        Ok(SocketAddr::new(ip, port_number(self.container, port)?))
    }
}

/// Asks once over HTTP.
pub(super) async fn get(action: &HTTPGetAction, address: SocketAddr) -> Result<(), String> {
    if action.scheme.as_deref().is_some_and(|scheme| scheme != "HTTP") {
        return Err("this node asks over plain HTTP only".to_owned());
    }
    let failed = |error: std::io::Error| format!("Get \"http://{address}\": {error}");
    let headers = action.http_headers.as_deref().unwrap_or_default();
    let host = headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"));
    let host = host.map_or_else(|| address.to_string(), |header| header.value.clone());
    let path = action.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/");
    let mut request =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: kube-probe/1\r\nConnection: close\r\n");
    for header in headers
        .iter()
        .filter(|header| !header.name.eq_ignore_ascii_case("host"))
    {
        let _ = write!(request, "{}: {}\r\n", header.name, header.value);
    }
    request.push_str("\r\n");
    let mut stream = TcpStream::connect(address).await.map_err(failed)?;
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await.map_err(failed)?;
    let code: Option<u16> = line.split_whitespace().nth(1).and_then(|code| code.parse().ok());
    match code {
        Some(200..400) => Ok(()),
        Some(code) => Err(format!("HTTP probe failed with statuscode: {code}")),
        None => Err(format!("{address} did not speak HTTP")),
    }
}

/// Runs a command inside the container.
pub(super) async fn run(process: u32, environment: &BTreeMap<String, String>, words: &[String]) -> Result<(), String> {
    let output = sandbox::inside(process, environment, words).output().await;
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{}: {}", output.status, String::from_utf8_lossy(&said).trim()))
}

/// The number of a port that may be given by name.
pub(super) fn port_number(container: &Container, port: &IntOrString) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let named = ports
                .find(|port| port.name.as_ref() == Some(name))
                .map(|port| port.container_port);
            named.or_else(|| name.parse().ok())
        }
    };
    number
        .and_then(|number| u16::try_from(number).ok())
        .ok_or_else(|| format!("no port {port:?}"))
}

/// The numbers of a probe, with Kubernetes's defaults.
struct Timing {
    delay: Duration,
    period: Duration,
    patience: Duration,
    successes: u32,
    failures: u32,
}

impl Timing {
    fn of(probe: &Probe) -> Self {
        let seconds = |value: Option<i32>, default: u64| {
            let value = value
                .and_then(|value| u64::try_from(value).ok())
                .filter(|value| *value > 0);
            Duration::from_secs(value.unwrap_or(default))
        };
        let count = |value: Option<i32>, default: u32| {
            value
                .and_then(|value| u32::try_from(value).ok())
                .filter(|value| *value > 0)
                .unwrap_or(default)
        };
        Self {
            delay: seconds(probe.initial_delay_seconds, 0),
            period: seconds(probe.period_seconds, 10),
            patience: seconds(probe.timeout_seconds, 1),
            successes: count(probe.success_threshold, 1),
            failures: count(probe.failure_threshold, 3),
        }
    }
}
