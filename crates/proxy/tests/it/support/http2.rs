//! HTTP/2 by the library, and by hand where the library refuses to send what a test is about.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request, Response};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

use super::{client::Connection, soon};

/// A connection on which HTTP/2 is spoken.
pub(crate) struct Http2 {
    pub(crate) send: SendRequest<Bytes>,
    /// Ends when the connection does.
    pub(crate) connection: tokio::task::JoinHandle<Result<(), h2::Error>>,
}

impl Http2 {
    pub(crate) async fn on(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        let (send, connection) = soon("an HTTP/2 preface", h2::client::handshake(stream)).await.unwrap();
        let connection = tokio::spawn(connection);
        Self { send, connection }
    }

    /// With prior knowledge, in clear text.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = soon("connect", TcpStream::connect(address)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::on(stream).await
    }

    /// Sends a request with a body and gives the whole response.
    pub(crate) async fn request(&mut self, request: Request<&'static [u8]>) -> Result<Http2Response, h2::Error> {
        soon("an HTTP/2 response", async {
            let (parts, body) = request.into_parts();
            self.send = self.send.clone().ready().await?;
            let (response, mut stream) = self
                .send
                .send_request(Request::from_parts(parts, ()), body.is_empty())?;
            if !body.is_empty() {
                stream.send_data(Bytes::from_static(body), true)?;
            }
            whole(response.await?).await
        })
        .await
    }

    pub(crate) async fn get(&mut self, uri: &str) -> Http2Response {
        self.request(Request::get(uri).body(&b""[..]).unwrap()).await.unwrap()
    }
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Http2Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

/// Reads a response to its end.
pub(crate) async fn whole(response: Response<h2::RecvStream>) -> Result<Http2Response, h2::Error> {
    let (parts, mut stream) = response.into_parts();
    let (body, trailers) = read(&mut stream).await?;
    Ok(Http2Response {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body,
        trailers,
    })
}

async fn read(stream: &mut h2::RecvStream) -> Result<(Vec<u8>, Option<HeaderMap>), h2::Error> {
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        stream.flow_control().release_capacity(data.len())?;
        body.extend_from_slice(&data);
    }
    Ok((body, stream.trailers().await?))
}

/// A request as an HTTP/2 backend received it.
#[derive(Clone, Debug)]
pub(crate) struct Http2Recorded {
    pub(crate) head: Arc<http::request::Parts>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

/// A backend that speaks HTTP/2 in clear text and answers with the request's body and trailers.
#[derive(Debug)]
pub(crate) struct Http2Backend {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Arc<Mutex<Vec<Http2Recorded>>>,
    task: AbortHandle,
}

impl Drop for Http2Backend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a backend answers: a head, a body and trailers.
pub(crate) type Http2Answer = (Response<()>, Vec<u8>, Option<HeaderMap>);
type Answer = dyn Fn(&Http2Recorded) -> Http2Answer + Send + Sync;

fn echo(request: &Http2Recorded) -> Http2Answer {
    let response = Response::builder().header("x-backend", "h2").body(()).unwrap();
    (response, request.body.clone(), request.trailers.clone())
}

impl Http2Backend {
    pub(crate) async fn start() -> Self {
        Self::answering(echo).await
    }

    pub(crate) fn count(&self) -> usize {
        self.requests.lock().len()
    }

    /// Answers every request with what the function makes of it.
    pub(crate) async fn answering(answers: impl Fn(&Http2Recorded) -> Http2Answer + Send + Sync + 'static) -> Self {
        let answers: Arc<Answer> = Arc::new(answers);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<Http2Recorded>>>::default();
        let log = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, answers) = (Arc::clone(&log), Arc::clone(&answers));
                tokio::spawn(async move {
                    let mut connection = h2::server::handshake(stream).await?;
                    while let Some(accepted) = connection.accept().await {
                        let (request, respond) = accepted?;
                        tokio::spawn(answer(request, respond, Arc::clone(&log), Arc::clone(&answers)));
                    }
                    Ok::<(), h2::Error>(())
                });
            }
        });
        Self {
            address,
            requests,
            task: task.abort_handle(),
        }
    }
}

async fn answer(
    request: Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    log: Arc<Mutex<Vec<Http2Recorded>>>,
    answers: Arc<Answer>,
) -> Result<(), h2::Error> {
    let (head, mut stream) = request.into_parts();
    let (body, trailers) = read(&mut stream).await?;
    let recorded = Http2Recorded {
        head: Arc::new(head),
        body,
        trailers,
    };
    let (response, body, trailers) = answers(&recorded);
    log.lock().push(recorded);
    let mut send = respond.send_response(response, body.is_empty() && trailers.is_none())?;
    match trailers {
        Some(trailers) => {
            send.send_data(body.into(), false)?;
            send.send_trailers(trailers)
        }
        None if body.is_empty() => Ok(()),
        None => send.send_data(body.into(), true),
    }
}

/// What became of a stream of a [`RawHttp2`] connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Response headers; the first byte of the block says 200 (0x88) or 400 (0x8c).
    Headers(Vec<u8>),
    /// The stream was reset, with this code.
    Reset(u32),
    /// The connection was given up, with this code.
    GoAway(u32),
    /// The connection just ended.
    Closed,
}

impl Outcome {
    /// Whether the request did not get through.
    pub(crate) fn is_refused(&self) -> bool {
        !matches!(self, Self::Headers(block) if !block.starts_with(&[0x8c]))
    }
}

/// An HTTP/2 connection whose frames are written by hand.
pub(crate) struct RawHttp2 {
    stream: std::pin::Pin<Box<dyn Connection>>,
}

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Header fields as literals, never indexed and not compressed.
pub(crate) fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0x10);
        for text in [name, value] {
            let length = u8::try_from(text.len()).unwrap();
            assert!(length < 127, "longer texts need another encoding");
            block.push(length);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// Flags of frames.
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

impl RawHttp2 {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = soon("connect", TcpStream::connect(address)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut connection = Self {
            stream: Box::pin(stream),
        };
        connection.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        connection.send(&frame(4, 0, 0, &[])).await;
        connection
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        soon("send", self.stream.write_all(bytes)).await.unwrap();
    }

    /// Sends, unless the proxy has closed already.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) -> bool {
        soon("send", self.stream.write_all(bytes)).await.is_ok()
    }

    /// Sends a request without a body.
    pub(crate) async fn request(&mut self, stream: u32, header_fields: &[(&str, &str)]) {
        self.send(&frame(1, END_STREAM | END_HEADERS, stream, &fields(header_fields)))
            .await;
    }

    /// The next frame: its kind, flags, stream and payload.
    pub(crate) async fn frame(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        soon("a frame", async {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await.ok()?;
            let [a, b, c, kind, flags, stream @ ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.stream.read_exact(&mut payload).await.ok()?;
            Some((kind, flags, u32::from_be_bytes(stream), payload))
        })
        .await
    }

    /// What becomes of a stream.
    pub(crate) async fn outcome(&mut self, stream: u32) -> Outcome {
        let code = |payload: &[u8], at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
        loop {
            match self.frame().await {
                None => return Outcome::Closed,
                Some((1, _, of, payload)) if of == stream => return Outcome::Headers(payload),
                Some((3, _, of, payload)) if of == stream => return Outcome::Reset(code(&payload, 0)),
                Some((7, _, _, payload)) => return Outcome::GoAway(code(&payload, 4)),
                // Settings are acknowledged, everything else is of no interest.
                Some((4, 0, _, _)) => _ = self.try_send(&frame(4, 1, 0, &[])).await,
                Some(_) => {}
            }
        }
    }
}
