//! The node's own server, which the API server asks for logs when somebody calls `kubectl logs`.
//!
//! It answers only those who show a certificate of the cluster's authority, which the API server does.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context;
use bytes::Bytes;
use futures::{StreamExt, stream, stream::BoxStream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};
use tokio_rustls::TlsAcceptor;

use super::{
    KUBELET_PORT, Node,
    pod::{ContainerKey, Line, Log},
};
use crate::cluster::certificates::Certificates;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Listens, and serves as long as `tasks` lives.
pub(super) async fn start(node: &Arc<Node>, tasks: &mut JoinSet<()>) -> anyhow::Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(tls(&node.settings.certificates)?));
    let address = SocketAddr::from((node.address(), KUBELET_PORT));
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))?;
    tasks.spawn(serve(listener, acceptor, Arc::clone(node)));
    Ok(())
}

fn tls(certificates: &Certificates) -> anyhow::Result<ServerConfig> {
    let parse = |text: &str| CertificateDer::from_pem_slice(text.as_bytes()).context("a certificate is not PEM");
    let mut roots = RootCertStore::empty();
    roots.add(parse(&certificates.authority.text)?)?;
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build()?;
    let key = PrivateKeyDer::from_pem_slice(certificates.serving.key.text.as_bytes())?;
    let chain = vec![parse(&certificates.serving.certificate.text)?];
    let mut config = ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, node: Arc<Node>) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(serve_connection(stream, acceptor.clone(), Arc::clone(&node)));
            }
            // For want of descriptors, perhaps: it passes.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn serve_connection(stream: TcpStream, acceptor: TlsAcceptor, node: Arc<Node>) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer(&node, &request);
        async move { Ok::<_, Infallible>(answer) }
    });
    // A client that goes away is no error of ours.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn answer(node: &Node, request: &Request<Incoming>) -> Response<Body> {
    let parts: Vec<&str> = request.uri().path().split('/').skip(1).collect();
    match (request.method(), parts.as_slice()) {
        (&Method::GET, ["healthz"]) => text(StatusCode::OK, "ok"),
        (&Method::GET, ["containerLogs", namespace, pod, container]) => {
            let key = ContainerKey {
                namespace: (*namespace).to_owned(),
                pod: (*pod).to_owned(),
                container: (*container).to_owned(),
            };
            let query = Query::parse(request.uri().query().unwrap_or_default());
            match node.logs.find(&key, query.is_previous) {
                Some(log) => Response::new(BodyExt::boxed_unsync(StreamBody::new(stream_log(log, query)))),
                None => text(
                    StatusCode::NOT_FOUND,
                    "the container has not run yet, or its run is forgotten\n",
                ),
            }
        }
        _ => text(
            StatusCode::NOT_IMPLEMENTED,
            "this node offers logs, but no exec, attach or port-forward\n",
        ),
    }
}

fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::from(text).boxed_unsync());
    *response.status_mut() = status;
    response
}

/// What is asked of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Query {
    is_followed: bool,
    is_previous: bool,
    has_times: bool,
    tail: Option<usize>,
    since: Option<Timestamp>,
    limit: Option<usize>,
}

impl Query {
    fn parse(text: &str) -> Self {
        let mut query = Self::default();
        for (name, value) in text.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "follow" => query.is_followed = value == "true",
                "previous" => query.is_previous = value == "true",
                "timestamps" => query.has_times = value == "true",
                "tailLines" => query.tail = value.parse().ok(),
                "limitBytes" => query.limit = value.parse().ok(),
                "sinceTime" => query.since = value.replace("%3A", ":").replace("%2B", "+").parse().ok(),
                "sinceSeconds" => {
                    let seconds = value.parse().ok().map(Duration::from_secs);
                    query.since = seconds.and_then(|time| Timestamp::now().checked_sub(time).ok());
                }
                _ => {}
            }
        }
        query
    }

    /// The lines that are asked for, of those that are there at the beginning.
    fn select(&self, lines: &[Line]) -> Vec<u8> {
        let since = self.since.unwrap_or(Timestamp::MIN);
        let recent: Vec<&Line> = lines.iter().filter(|line| line.time >= since).collect();
        let first = self.tail.map_or(0, |tail| recent.len().saturating_sub(tail));
        let mut bytes: Vec<u8> = recent
            .into_iter()
            .skip(first)
            .flat_map(|line| self.render(line))
            .collect();
        bytes.truncate(self.limit.unwrap_or(usize::MAX));
        bytes
    }

    fn render(&self, line: &Line) -> Vec<u8> {
        let time = if self.has_times {
            format!("{:.9} ", line.time)
        } else {
            String::new()
        };
        [time.as_bytes(), &line.text].concat()
    }
}

/// The lines that are there and, if asked for, those that come.
fn stream_log(log: Arc<Log>, query: Query) -> BoxStream<'static, Result<Frame<Bytes>, Infallible>> {
    let (lines, place) = log.read(0).unwrap_or_default();
    let first = stream::iter([query.select(&lines)]);
    let progress = log.progress();
    let rest = stream::unfold((log, progress, place, query.is_followed), move |state| async move {
        let (log, mut progress, place, is_followed) = state;
        if !is_followed {
            return None;
        }
        loop {
            let is_closed = progress.borrow_and_update().is_closed;
            let (lines, next) = log.read(place).ok()?;
            if !lines.is_empty() {
                let bytes = lines.iter().flat_map(|line| query.render(line)).collect();
                return Some((bytes, (log, progress, next, true)));
            }
            if is_closed || progress.changed().await.is_err() {
                return None;
            }
        }
    });
    first
        .chain(rest)
        .map(|bytes: Vec<u8>| Ok(Frame::data(Bytes::from(bytes))))
        .boxed()
}

#[cfg(test)]
mod tests {
    use super::{Line, Query};

    fn lines() -> Vec<Line> {
        let line = |second: &str, text: &str| Line {
            time: format!("2026-01-01T00:00:{second}Z").parse().unwrap(),
            text: text.as_bytes().to_vec(),
        };
        vec![line("01", "one\n"), line("02", "two\n"), line("03", "three\n")]
    }

    #[test]
    fn a_log_is_cut_by_time_by_lines_and_by_bytes() {
        let select = |query: &str| String::from_utf8(Query::parse(query).select(&lines())).unwrap();
        assert_eq!(select(""), "one\ntwo\nthree\n");
        assert_eq!(select("tailLines=1"), "three\n");
        assert_eq!(select("tailLines=0"), "");
        assert_eq!(select("sinceTime=2026-01-01T00%3A00%3A02Z"), "two\nthree\n");
        assert_eq!(select("limitBytes=5"), "one\nt");
        assert_eq!(
            select("tailLines=1&timestamps=true"),
            "2026-01-01T00:00:03.000000000Z three\n"
        );
    }
}
