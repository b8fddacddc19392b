//! Ordinary clients and servers of the ecosystem talk through the proxy, in every pairing of versions.
//!
//! Everything else here speaks by hand. This holds the proxy against an implementation that knows nothing of these tests.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{
    Plan, Running,
    running::{free_port, here},
    soon,
};

type Body = BoxBody<Bytes, Infallible>;

/// Sends back the body, piece by piece as it comes, with the trailers.
async fn echo(request: Request<Incoming>) -> Result<Response<BoxBody<Bytes, hyper::Error>>, Infallible> {
    let (parts, body) = request.into_parts();
    let mut response = Response::new(body.boxed());
    response
        .headers_mut()
        .insert("x-method", parts.method.as_str().parse().unwrap());
    response.headers_mut().insert(
        "x-target",
        parts.uri.path_and_query().unwrap().as_str().parse().unwrap(),
    );
    Ok(response)
}

/// A server of one version; its port.
async fn server(is_http2: bool) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let stream = TokioIo::new(stream);
            tokio::spawn(async move {
                if is_http2 {
                    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    builder.serve_connection(stream, service_fn(echo)).await
                } else {
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(stream, service_fn(echo))
                        .await
                }
            });
        }
    });
    address
}

enum Sender {
    Http1(hyper::client::conn::http1::SendRequest<Body>),
    Http2(hyper::client::conn::http2::SendRequest<Body>),
}

impl Sender {
    async fn connect(port: u16, is_http2: bool) -> Self {
        let stream = TokioIo::new(TcpStream::connect(here(port)).await.unwrap());
        if is_http2 {
            let (send, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
                .await
                .unwrap();
            tokio::spawn(connection);
            Self::Http2(send)
        } else {
            let (send, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            Self::Http1(send)
        }
    }

    async fn send(&mut self, mut request: Request<Body>) -> Response<Incoming> {
        let response = match self {
            Self::Http1(send) => {
                let authority = request.uri().authority().unwrap().as_str().parse().unwrap();
                request.headers_mut().insert("host", authority);
                *request.uri_mut() = request.uri().path_and_query().unwrap().as_str().parse().unwrap();
                send.ready().await.unwrap();
                send.send_request(request).await
            }
            Self::Http2(send) => send.send_request(request).await,
        };
        response.unwrap()
    }
}

/// A body of known length, or one that comes in pieces and ends with a trailer.
fn body(size: usize, is_streamed: bool) -> (Vec<u8>, Body) {
    let bytes: Vec<u8> = (0..size)
        .map(|position| u8::try_from(position % 251).unwrap())
        .collect();
    let body = if is_streamed {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from(size));
        let pieces: Vec<_> = bytes
            .chunks(7000)
            .map(|piece| Frame::data(Bytes::copy_from_slice(piece)))
            .collect();
        let frames = pieces.into_iter().chain([Frame::trailers(trailers)]).map(Ok);
        StreamBody::new(futures::stream::iter(frames)).boxed()
    } else {
        Full::new(Bytes::from(bytes.clone())).boxed()
    };
    (bytes, body)
}

#[tokio::test]
async fn every_pairing_of_versions_carries_bodies_and_trailers_whole() {
    for is_server_http2 in [false, true] {
        let address = server(is_server_http2).await;
        let port = free_port();
        let plan = Plan::new().http("web", port).all_to("backend");
        let plan = if is_server_http2 {
            plan.h2_cluster("backend", address)
        } else {
            plan.cluster("backend", &[address])
        };
        let _running = Running::serving(plan).await;
        for is_client_http2 in [false, true] {
            let mut client = Sender::connect(port, is_client_http2).await;
            for size in [0, 1, 1000, 16 * 1024, 100_000, 3 << 20] {
                for is_streamed in [false, true] {
                    let what = format!("client {is_client_http2} server {is_server_http2} {size} {is_streamed}");
                    let (bytes, body) = body(size, is_streamed);
                    let request = Request::post(format!("http://a.test/{size}?streamed={is_streamed}"))
                        .header("te", "trailers")
                        .header("trailer", "x-sum")
                        .body(body)
                        .unwrap();
                    let exchange = async {
                        let response = client.send(request).await;
                        let (parts, body) = response.into_parts();
                        (parts, body.collect().await.unwrap())
                    };
                    let (parts, collected) = soon(&what, exchange).await;
                    assert_eq!(parts.status, 200, "{what}");
                    assert_eq!(parts.headers["x-method"], "POST", "{what}");
                    let target = format!("/{size}?streamed={is_streamed}");
                    assert_eq!(parts.headers["x-target"], target.as_str(), "{what}");
                    let sum = collected.trailers().and_then(|trailers| trailers.get("x-sum")).cloned();
                    // The server sends trailers over HTTP/1.1 only if it announced them, which this one does not.
                    let passes = is_streamed && is_server_http2;
                    assert_eq!(sum, passes.then(|| HeaderValue::from(size)), "{what}");
                    assert!(collected.to_bytes() == bytes, "{what}: another body");
                }
            }
        }
    }
}
