//! A client of gRPC, and as much of its messages as tests read.

use std::net::SocketAddr;

use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Body, Bytes, Incoming},
    client::conn::http2,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::{peers::framed, process::DEADLINE};

/// The service of the echo.
pub(crate) const ECHO: &str = "gateway_api_conformance.echo_basic.grpcecho.GrpcEcho";

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) http_status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Reply {
    /// The status of the call, wherever it stands.
    pub(crate) fn status(&self) -> &str {
        let trailers = self.trailers.as_ref().unwrap_or(&self.headers);
        trailers.get("grpc-status").map_or("", |value| value.to_str().unwrap())
    }

    /// Whether the gateway itself answered: with a head that is the end as well.
    pub(crate) fn is_trailers_only(&self) -> bool {
        self.http_status == 200
            && self.body.is_empty()
            && self.trailers.is_none()
            && self.headers.contains_key("grpc-status")
            && self.headers["content-type"] == "application/grpc"
    }

    /// What the echo says of the request.
    fn assertions(&self) -> &[u8] {
        fields(self.body.get(5..).unwrap_or_default(), 1)
            .next()
            .unwrap_or_default()
    }

    /// The Service whose echo answered.
    pub(crate) fn service(&self) -> String {
        let mut contexts = fields(self.assertions(), 4);
        text(fields(contexts.next().unwrap_or_default(), 3).next())
    }

    /// The values of a request header that the echo saw.
    pub(crate) fn echoed_header(&self, name: &str) -> Vec<String> {
        let pairs =
            fields(self.assertions(), 2).map(|pair| (text(fields(pair, 1).next()), text(fields(pair, 2).next())));
        pairs
            .filter(|(found, _)| found == name)
            .map(|(_, value)| value)
            .collect()
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

/// The fields of a message that have this number, of which all are text or messages.
pub(crate) fn fields(message: &[u8], number: u64) -> impl Iterator<Item = &[u8]> {
    let mut rest = message;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let key = varint(&mut rest)?;
            let length = usize::try_from(varint(&mut rest)?).ok()?;
            if key & 7 != 2 {
                continue;
            }
            let (value, after) = rest.split_at_checked(length)?;
            rest = after;
            if key >> 3 == number {
                return Some(value);
            }
        }
        None
    })
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Some(value);
        }
    }
    None
}

/// A call, ready for its body.
pub(crate) fn request<B>(path: &str, headers: &[(&str, &str)], body: B) -> Request<B> {
    let mut request = Request::post(format!("http://a.test{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body).unwrap()
}

/// Runs something on a runtime of its own, for as long as tests wait.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let work = async { tokio::time::timeout(DEADLINE, work).await.expect("an answer in time") };
    runtime.block_on(work)
}

/// Sends a request over a connection of its own.
pub(crate) async fn send<B>(address: SocketAddr, request: Request<B>) -> Response<Incoming>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    sender.send_request(request).await.unwrap()
}

/// Calls a method with one message, and waits for the end of the answer.
pub(crate) fn call(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Reply {
    call_with(address, path, headers, b"")
}

/// The same with a message that is not empty.
pub(crate) fn call_with(address: SocketAddr, path: &str, headers: &[(&str, &str)], message: &[u8]) -> Reply {
    block_on(async {
        let request = request(path, headers, Full::new(Bytes::from(framed(message))));
        let (head, body) = send(address, request).await.into_parts();
        let body = body.collect().await.unwrap();
        let trailers = body.trailers().cloned();
        Reply {
            http_status: head.status.as_u16(),
            headers: head.headers,
            body: body.to_bytes().to_vec(),
            trailers,
        }
    })
}
