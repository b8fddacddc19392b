//! `/metrics`: what the proxy and the spine counted, in Prometheus' text format.
//!
//! Every family is declared in [`catalogue`]; `docs/metrics.md` lists the same, and a test holds the three equal. Families
//! without a sample still show their head, so that a dashboard can be built before the first request.

pub(crate) mod catalogue;
mod cluster;
mod exposition;

use gatewright_ir::{Origin, Transport};
use gatewright_proxy::{BindConnections, Metrics, StreamTraffic};
use gatewright_world::origin;

use crate::{
    cluster::ClusterSummary,
    readiness::State,
    view::{Folder, View},
};
use catalogue as family;
use exposition::Exposition;

/// The content type of the text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Renders everything.
pub(crate) fn render(
    proxy: &Metrics,
    view: &View,
    state: &State,
    started: f64,
    cluster: Option<&ClusterSummary>,
) -> String {
    let mut out = Exposition::default();
    requests(&mut out, proxy);
    streams(&mut out, proxy);
    connections(&mut out, proxy);
    control(&mut out, view, state, started);
    if let Some(folder) = &view.files {
        files(&mut out, folder);
    }
    if let Some(cluster) = cluster {
        cluster::render(&mut out, cluster, &view.replicas);
    }
    out.into_text()
}

fn requests(out: &mut Exposition, proxy: &Metrics) {
    out.family(&family::REQUESTS);
    for count in &proxy.requests {
        let (gateway, listener) = listener_labels(&count.listener);
        let route = count.route.as_ref().map(Origin::as_str).unwrap_or_default();
        let code = if count.status == 0 {
            "other".to_owned()
        } else {
            count.status.to_string()
        };
        out.sample(&[&gateway, &listener, route, &code], count.count);
    }
    out.family(&family::REQUEST_DURATION);
    for traffic in &proxy.listeners {
        let (gateway, listener) = listener_labels(&traffic.listener);
        out.histogram(&[&gateway, &listener], &traffic.latency);
    }
    out.family(&family::REQUEST_BODY_BYTES);
    for traffic in &proxy.listeners {
        let (gateway, listener) = listener_labels(&traffic.listener);
        out.sample(&[&gateway, &listener], traffic.received_bytes);
    }
    out.family(&family::RESPONSE_BODY_BYTES);
    for traffic in &proxy.listeners {
        let (gateway, listener) = listener_labels(&traffic.listener);
        out.sample(&[&gateway, &listener], traffic.sent_bytes);
    }
    out.family(&family::LOCAL_ANSWERS);
    for count in &proxy.answers {
        let (gateway, listener) = listener_labels(&count.listener);
        out.sample(&[&gateway, &listener, count.reason], count.count);
    }
}

/// Reads one number of what was counted.
type Value<T> = fn(&T) -> u64;

/// What was routed as a whole.
fn streams(out: &mut Exposition, proxy: &Metrics) {
    let values: [(_, Value<StreamTraffic>); 4] = [
        (&family::STREAMS, |traffic| traffic.open),
        (&family::STREAMS_OPENED, |traffic| traffic.opened),
        (&family::STREAM_RECEIVED_BYTES, |traffic| traffic.received_bytes),
        (&family::STREAM_SENT_BYTES, |traffic| traffic.sent_bytes),
    ];
    for (family, value) in values {
        out.family(family);
        for traffic in &proxy.streams {
            let (gateway, listener) = listener_labels(&traffic.listener);
            out.sample(&[&gateway, &listener], value(traffic));
        }
    }
    out.family(&family::STREAMS_REFUSED);
    for count in &proxy.refused_streams {
        let (gateway, listener) = listener_labels(&count.listener);
        out.sample(&[&gateway, &listener, count.reason], count.count);
    }
}

fn connections(out: &mut Exposition, proxy: &Metrics) {
    // People say the transport only of what is not TCP.
    let address = |bind: &BindConnections| match bind.transport {
        Transport::Tcp => bind.address.to_string(),
        Transport::Udp => format!("{}/udp", bind.address),
    };
    let values: [(_, Value<BindConnections>); 3] = [
        (&family::CONNECTIONS, |bind| bind.open),
        (&family::CONNECTIONS_ACCEPTED, |bind| bind.accepted),
        (&family::CONNECTIONS_REFUSED, |bind| bind.refused),
    ];
    for (family, value) in values {
        out.family(family);
        for bind in &proxy.connections {
            out.sample(&[&address(bind)], value(bind));
        }
    }
    out.family(&family::TLS_FAILURES);
    for failure in &proxy.tls_failures {
        out.sample(&[&failure.address.to_string(), failure.reason], failure.count);
    }
    let upstream = proxy.upstream;
    for (family, value) in [
        (&family::UPSTREAM_CONNECTIONS, upstream.open),
        (&family::UPSTREAM_OPENED, upstream.opened),
        (&family::UPSTREAM_FAILED, upstream.failed),
        (&family::UPSTREAM_REUSED, upstream.reused),
        (&family::UPSTREAM_RETRIED, upstream.retried),
        (&family::MIRRORED, upstream.mirrored),
        (&family::MIRRORS_DROPPED, upstream.mirrors_dropped),
    ] {
        out.family(family);
        out.sample(&[], value);
    }
}

fn control(out: &mut Exposition, view: &View, state: &State, started: f64) {
    out.family(&family::PLAN_DURATION);
    out.histogram(&[], &view.plan_times.histogram());
    out.family(&family::OBJECTS);
    for (kind, count) in &view.counts {
        out.sample(&[kind.as_str()], *count as u64);
    }
    out.family(&family::READY);
    out.sample(&[], u64::from(*state == State::Ready));
    out.family(&family::START_TIME);
    out.number(&[], started);
    out.family(&family::BUILD_INFO);
    out.sample(&[env!("CARGO_PKG_VERSION")], 1);
}

fn files(out: &mut Exposition, folder: &Folder) {
    let errors = folder.problems.iter().filter(|problem| problem.is_error()).count();
    out.family(&family::FILE_PROBLEMS);
    out.sample(&["error"], errors as u64);
    out.sample(&["warning"], (folder.problems.len() - errors) as u64);
    out.family(&family::RELOADS);
    out.sample(&[], folder.reloads);
    out.family(&family::RELOAD_ERRORS);
    out.sample(&[], folder.errors);
}

/// Gateway (`shop/front`) and listener (`https`).
fn listener_labels(origin: &Origin) -> (String, String) {
    match origin::parse(origin) {
        Some((gateway, Some(listener))) => (format!("{}/{}", gateway.namespace, gateway.name), listener.to_string()),
        _ => (origin.to_string(), String::new()),
    }
}
