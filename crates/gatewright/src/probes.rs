//! Probes and metrics, on an address of their own: Kubernetes and Prometheus ask here, from other hosts if so configured.
//!
//! Reads the readiness, the view and the proxy's counters; changes nothing and shows nothing that is secret.

use std::sync::Arc;

use axum::{
    Router,
    extract::State as Extract,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};
use jiff::Timestamp;

use crate::{
    cluster::Monitor,
    metrics,
    readiness::{Readiness, State},
    view::SharedView,
};

/// Where the proxy's counters are read.
pub(crate) type ReadMetrics = Arc<dyn Fn() -> gatewright_proxy::Metrics + Send + Sync>;

/// What the probes read.
#[derive(Clone)]
pub(crate) struct Probes {
    pub(crate) readiness: Readiness,
    pub(crate) view: SharedView,
    pub(crate) read_metrics: ReadMetrics,
    pub(crate) started: Timestamp,
    /// Where objects come from a cluster.
    pub(crate) cluster: Option<Monitor>,
}

/// `/healthz` and `/readyz`.
pub(crate) fn health(probes: Probes) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .with_state(probes)
}

/// `/metrics`.
pub(crate) fn metrics(probes: Probes) -> Router {
    Router::new().route("/metrics", get(scrape)).with_state(probes)
}

async fn readyz(Extract(probes): Extract<Probes>) -> impl IntoResponse {
    match probes.readiness.state() {
        State::Ready => (StatusCode::OK, "ok\n".to_owned()),
        State::Starting(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("starting: {reason}\n")),
        State::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned()),
    }
}

async fn scrape(Extract(probes): Extract<Probes>) -> impl IntoResponse {
    let started = probes.started.as_duration().as_secs_f64();
    let proxy = (probes.read_metrics)();
    let cluster = probes.cluster.as_ref().map(Monitor::read);
    let text = metrics::render(
        &proxy,
        &probes.view.load(),
        &probes.readiness.state(),
        started,
        cluster.as_ref(),
    );
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text)
}
