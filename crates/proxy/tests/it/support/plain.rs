//! Backends that speak no protocol in particular: they hand their connections to the test, or say who they are.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::AbortHandle,
};

use super::soon;

/// A backend on loopback; it ends when it is dropped.
pub(crate) struct Plain {
    pub(crate) address: SocketAddr,
    connections: mpsc::UnboundedReceiver<TcpStream>,
    task: AbortHandle,
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Plain {
    /// Hands connections to the test.
    pub(crate) async fn manual() -> Self {
        Self::at((Ipv4Addr::LOCALHOST, 0).into()).await
    }

    pub(crate) async fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, connections) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                if sender.send(stream).is_err() {
                    return;
                }
            }
        });
        Self {
            address,
            connections,
            task: task.abort_handle(),
        }
    }

    /// Says its name to whoever connects, then repeats what it hears.
    pub(crate) async fn named(name: &'static str) -> Self {
        let mut backend = Self::manual().await;
        let (_, nothing) = mpsc::unbounded_channel();
        let mut connections = std::mem::replace(&mut backend.connections, nothing);
        tokio::spawn(async move {
            while let Some(mut stream) = connections.recv().await {
                tokio::spawn(async move {
                    if stream.write_all(name.as_bytes()).await.is_ok() {
                        let (mut reader, mut writer) = stream.split();
                        _ = tokio::io::copy(&mut reader, &mut writer).await;
                        _ = writer.shutdown().await;
                    }
                });
            }
        });
        backend
    }

    pub(crate) async fn accept(&mut self) -> TcpStream {
        soon("a connection", self.connections.recv()).await.unwrap()
    }
}

/// A connection to the proxy.
pub(crate) async fn dial(address: SocketAddr) -> TcpStream {
    let stream = soon("a connection", TcpStream::connect(address)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads exactly what is expected.
pub(crate) async fn expect(stream: &mut (impl AsyncReadExt + Unpin), expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    soon("bytes", stream.read_exact(&mut bytes)).await.unwrap();
    assert_eq!(bytes, expected);
}

/// Reads to the end.
pub(crate) async fn rest(stream: &mut (impl AsyncReadExt + Unpin)) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    soon("the end", stream.read_to_end(&mut bytes)).await.map(|_| bytes)
}

/// Connects to where every connection is reset, which may happen before the client knows that it is connected.
pub(crate) async fn assert_refused(address: SocketAddr) {
    match soon("a connection", TcpStream::connect(address)).await {
        Ok(mut stream) => assert_reset(&mut stream).await,
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}"),
    }
}

/// A connection that is refused is reset, and does not merely end.
pub(crate) async fn assert_reset(stream: &mut TcpStream) {
    let error = rest(stream).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
}
