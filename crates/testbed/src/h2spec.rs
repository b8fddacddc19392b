//! h2spec, the conformance tests of HTTP/2, run against our proxy and against Envoy in the same run.
//!
//! `tests/cluster/h2spec.rs` calls [`judge`] and demands that we do no worse. h2spec is the published one: `conformance/h2spec` of
//! this repository is the Go module that builds it. Both proxies have the same certificate, the same backend and a route of
//! everything to it.

mod judged;
mod program;
mod report;

use std::{fs, net::SocketAddrV4, path::Path, process::Command};

use anyhow::Context;

use self::judged::Material;
pub use self::{
    judged::{Proxy, Security},
    report::{Case, Outcome, Report},
};
use crate::{process, programs};

/// What h2spec found, of both proxies in one kind of connection.
#[derive(Debug)]
pub struct Comparison {
    /// The kind.
    pub security: Security,
    /// Of ours.
    pub ours: Report,
    /// Of Envoy.
    pub envoy: Report,
}

impl Comparison {
    /// The cases that Envoy passes and we do not.
    pub fn worse(&self) -> Vec<&Case> {
        let is_worse = |case: &&Case| self.envoy.passed(case) && !self.ours.passed(case);
        self.envoy.cases().filter(is_worse).collect()
    }
}

/// Runs h2spec against both proxies, with and without TLS. Files are kept in `folder`.
pub fn judge(gatewright: &Path, folder: &Path) -> anyhow::Result<Vec<Comparison>> {
    let envoy = programs::envoy::find()?;
    let h2spec = program::find()?;
    let material = Material::make(folder)?;
    let (_backend, backend) = judged::backend(gatewright, folder)?;
    let ours = judged::start(Proxy::Gatewright, gatewright, backend, &material, folder)?;
    let theirs = judged::start(Proxy::Envoy, &envoy, backend, &material, folder)?;
    let run = |proxy: Proxy, security: Security| {
        let server = match proxy {
            Proxy::Gatewright => &ours,
            Proxy::Envoy => &theirs,
        };
        let report = folder.join(format!("{}-{}.xml", proxy.label(), security.label()));
        run(&h2spec, proxy, server.address(security), security, &report)
    };
    // Envoy leaves many cases to their timeouts; both kinds of connection can wait at once.
    let mut envoys = std::thread::scope(|scope| {
        let run = &run;
        let running = Security::ALL.map(|security| scope.spawn(move || run(Proxy::Envoy, security)));
        running.map(|thread| thread.join().ok())
    });
    let mut comparisons = Vec::new();
    for (security, envoy) in Security::ALL.into_iter().zip(&mut envoys) {
        comparisons.push(Comparison {
            security,
            ours: run(Proxy::Gatewright, security)?,
            envoy: envoy.take().context("a thread panicked")??,
        });
    }
    Ok(comparisons)
}

/// Runs all cases, the strict ones among them, against one port.
fn run(
    h2spec: &Path,
    proxy: Proxy,
    address: SocketAddrV4,
    security: Security,
    report: &Path,
) -> anyhow::Result<Report> {
    let mut command = Command::new(h2spec);
    command
        .arg("--strict")
        .args([
            "--host",
            &address.ip().to_string(),
            "--port",
            &address.port().to_string(),
        ])
        .args(["--timeout", &proxy.patience().as_secs().to_string(), "--junit-report"])
        .arg(report);
    if security == Security::Tls {
        command.args(["--tls", "--insecure"]);
    }
    // It fails when a case does. What counts is the report, which it writes last.
    let ended = process::output(&command);
    let text = match fs::read(report) {
        Ok(text) => text,
        Err(error) => {
            ended.context("h2spec ended without a report")?;
            return Err(error).with_context(|| format!("h2spec wrote no {}", report.display()));
        }
    };
    Report::read(&String::from_utf8_lossy(&text))
        .with_context(|| format!("the report {} cannot be read", report.display()))
}
