//! HTTP connections of the backend, from the first byte to the last.
//!
//! The server calls [`serve`] for each accepted connection of an HTTP or gRPC port. What a request is answered with
//! is decided in [`paths`] and in `grpc`; here are only the protocol versions and the ways a connection ends.

mod bench;
mod echo;
mod paths;
mod retry;
mod set_header;
mod streaming;

use std::{
    pin::{Pin, pin},
    sync::Arc,
};

use http::{Request, Response};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    backend::{Session, Wish},
    body::{AnswerBody, Severed},
    stream::CasingStream,
};

pub(crate) use paths::{answer, text};

/// An answer, ready to be written.
pub(crate) type Answer = Response<AnswerBody>;

/// Which HTTP a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    /// HTTP/1.0 and 1.1.
    One,
    /// HTTP/2.
    Two,
}

/// Serves one connection until it ends, with the given function for each request.
pub(crate) async fn serve<S, H, F>(stream: S, version: HttpVersion, session: Arc<Session>, handler: H)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Arc<Session>, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Answer, Severed>> + Send + 'static,
{
    let service = {
        let session = Arc::clone(&session);
        service_fn(move |request| handler(Arc::clone(&session), request))
    };
    match version {
        HttpVersion::One => {
            let stream = CasingStream::new(stream, Arc::clone(&session.casing));
            let connection = http1::Builder::new()
                // It runs on idle connections too; a backend that never closes those keeps pools predictable.
                .header_read_timeout(None)
                // Most servers write names so; a proxy that relies on lower case is found out.
                .title_case_headers(true)
                // A client may close its side after the request and still wants the answer.
                .half_close(true)
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            drive(
                pin!(connection),
                http1::UpgradeableConnection::graceful_shutdown,
                &session,
            )
            .await;
        }
        HttpVersion::Two => {
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .enable_connect_protocol()
                .max_concurrent_streams(1024)
                .initial_stream_window_size(1 << 20)
                .initial_connection_window_size(1 << 22)
                .serve_connection(TokioIo::new(stream), service);
            drive(pin!(connection), http2::Connection::graceful_shutdown, &session).await;
        }
    }
}

/// Runs a connection; on return the caller drops it, and with it the socket.
async fn drive<C>(mut connection: Pin<&mut C>, finish: impl Fn(Pin<&mut C>), session: &Session)
where
    C: Future<Output = hyper::Result<()>>,
{
    let mut shutdown = session.shutdown.clone();
    let mut is_finishing = false;
    loop {
        tokio::select! {
            biased;
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(peer = %session.peer, %error, "connection ended");
                }
                return;
            }
            wish = session.ending.wished(), if !is_finishing => match wish {
                Wish::Reset => return,
                Wish::HangUp => {
                    is_finishing = true;
                    finish(connection.as_mut());
                }
            },
            () = shutdown.requested(), if !is_finishing => {
                is_finishing = true;
                finish(connection.as_mut());
            }
        }
    }
}
