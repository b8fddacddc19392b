//! Servers that a test writes itself: authorisers and services of gRPC. Each has a thread of its own and ends when dropped.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
    thread,
};

use futures::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Request, Response, request::Parts};
use http_body_util::{BodyExt, BodyStream, Full, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Bytes, Frame, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpListener, sync::oneshot};

/// An answer that may be a stream.
pub(crate) type Answer = Response<BoxBody<Bytes, hyper::Error>>;

/// A request that was read to its end.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) head: Parts,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    /// A header, as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// What a server speaks.
#[derive(Clone, Copy)]
enum Version {
    One,
    Two,
}

/// A server on a port of this host.
pub(crate) struct Peer {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Peer {
    /// A server for HTTP/1.1 that answers by a function of the whole request.
    pub(crate) fn http(answer: impl Fn(&Asked) -> Response<String> + Send + Sync + 'static) -> Self {
        Self::answering(Version::One, move |asked| {
            answer(asked).map(|body| Full::from(body).map_err(|never| match never {}).boxed())
        })
    }

    /// A service for gRPC that answers each call with the head and message of a function.
    pub(crate) fn grpc(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::answering(Version::Two, move |asked| {
            let frames = stream::iter([Ok(Frame::data(framed(&answer(asked)).into())), Ok(succeeded())]);
            called(BodyExt::boxed(StreamBody::new(frames)))
        })
    }

    /// A service for gRPC that sends every message back as it comes, and says at the end that all went well.
    pub(crate) fn streaming() -> Self {
        Self::start(Version::Two, Arc::default(), |request, _| async {
            let frames = BodyStream::new(request.into_body()).filter(|frame| {
                let is_data = frame.as_ref().map_or(true, Frame::is_data);
                std::future::ready(is_data)
            });
            let frames = frames.chain(stream::iter([Ok(succeeded())]));
            called(BodyExt::boxed(StreamBody::new(frames)))
        })
    }

    /// A service for gRPC that never answers.
    pub(crate) fn silent() -> Self {
        Self::start(Version::Two, Arc::default(), |request, asked| async move {
            let one = read(request).await;
            asked.lock().unwrap().push(one);
            std::future::pending().await
        })
    }

    fn answering(version: Version, answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        Self::start(version, Arc::default(), move |request, all: Arc<Mutex<Vec<Asked>>>| {
            let answer = Arc::clone(&answer);
            async move {
                let asked = read(request).await;
                all.lock().unwrap().push(asked.clone());
                answer(&asked)
            }
        })
    }

    fn start<F>(
        version: Version,
        asked: Arc<Mutex<Vec<Asked>>>,
        serve: impl Fn(Request<Incoming>, Arc<Mutex<Vec<Asked>>>) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, stopped) = oneshot::channel();
        let log = Arc::clone(&asked);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let accepting = accept(TcpListener::from_std(listener).unwrap(), version, log, serve);
                tokio::select! {
                    () = accepting => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            port,
            asked,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The thread waits for the end of the sender.
        drop(self.stop.take());
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

async fn accept<F>(
    listener: TcpListener,
    version: Version,
    asked: Arc<Mutex<Vec<Asked>>>,
    serve: impl Fn(Request<Incoming>, Arc<Mutex<Vec<Asked>>>) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Answer> + Send + 'static,
{
    loop {
        let (stream, _): (_, SocketAddr) = listener.accept().await.unwrap();
        let (serve, asked) = (serve.clone(), Arc::clone(&asked));
        let service = service_fn(move |request| {
            let answer = serve(request, Arc::clone(&asked));
            async { Ok::<_, Infallible>(answer.await) }
        });
        let stream = TokioIo::new(stream);
        tokio::spawn(async move {
            // A client that goes away is none of a test's business.
            let _ = match version {
                Version::One => http1::Builder::new().serve_connection(stream, service).await,
                Version::Two => {
                    http2::Builder::new(TokioExecutor::new())
                        .serve_connection(stream, service)
                        .await
                }
            };
        });
    }
}

async fn read(request: Request<Incoming>) -> Asked {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes().to_vec());
    Asked {
        head,
        body: body.unwrap_or_default(),
    }
}

/// A message with its five bytes of framing.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0][..], &length, message].concat()
}

fn called(body: BoxBody<Bytes, hyper::Error>) -> Answer {
    let mut answer = Response::new(body);
    let kind = HeaderValue::from_static("application/grpc");
    answer.headers_mut().insert("content-type", kind);
    answer
}

fn succeeded() -> Frame<Bytes> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    Frame::trailers(trailers)
}
