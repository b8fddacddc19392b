//! The admin API, on loopback: what is served and why, and what the log shows.
//!
//! Every answer is made of the published view, so the API never shows what the proxy does not serve. No request reaches
//! it that a web page could have made (see [`guard`]), and no answer holds a secret: the view has none.

pub(crate) mod document;
mod guard;

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    extract::{Query, State as Extract},
    http::StatusCode,
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    cluster::Monitor,
    logs::{LogControl, LogFormat},
    readiness::Readiness,
    view::SharedView,
};
use document::{Document, Selection};

/// What the admin API reads and changes.
#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) view: SharedView,
    pub(crate) readiness: Readiness,
    pub(crate) controller: Arc<str>,
    pub(crate) logs: LogControl,
    /// Where objects come from a cluster.
    pub(crate) cluster: Option<Monitor>,
}

/// The API, for a socket bound to this address.
pub(crate) fn router(admin: Admin, bound: SocketAddr) -> Router {
    Router::new()
        .route("/status", get(status))
        .route("/log-level", get(log_level).put(change_log_level))
        .with_state(admin)
        .layer(middleware::from_fn(move |request, next| {
            guard::check(bound, request, next)
        }))
}

async fn status(Extract(admin): Extract<Admin>, Query(selection): Query<Selection>) -> Json<Document> {
    let state = admin.readiness.state();
    let (cluster, problems) = match &admin.cluster {
        Some(monitor) => (Some(monitor.read()), monitor.problems()),
        None => (None, Vec::new()),
    };
    let mut document = Document::of(&admin.view.load(), &state, &admin.controller, &selection, cluster);
    document.problems.extend(problems);
    Json(document)
}

async fn log_level(Extract(admin): Extract<Admin>) -> Response {
    Json(&*admin.logs.settings()).into_response()
}

/// The body of a change; what is absent stays as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogChange {
    level: Option<String>,
    format: Option<LogFormat>,
}

/// Takes `{"level": …, "format": …}`, or the level alone as text.
async fn change_log_level(Extract(admin): Extract<Admin>, body: String) -> Response {
    let body = body.trim();
    let change = if body.starts_with('{') {
        serde_json::from_str::<LogChange>(body).map_err(|error| error.to_string())
    } else {
        let level = (!body.is_empty()).then(|| body.to_owned());
        level
            .map(|level| LogChange {
                level: Some(level),
                format: None,
            })
            .ok_or_else(|| "the body is empty".to_owned())
    };
    let changed = change.and_then(|change| admin.logs.change(change.level, change.format));
    match changed {
        Ok(settings) => Json(&*settings).into_response(),
        Err(error) => {
            let hint = r#"send {"level": "debug"}, {"format": "json"} or both"#;
            (StatusCode::BAD_REQUEST, Json(json!({ "error": error, "hint": hint }))).into_response()
        }
    }
}
