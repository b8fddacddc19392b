//! A client that sends exactly the bytes it is told to.

use std::{io, net::SocketAddr, pin::Pin};

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    message::{Framing, Head, Reader, declared},
    soon,
};

/// Any connection.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Send {}
impl<S: AsyncRead + AsyncWrite + Send> Connection for S {}

/// A connection to the proxy, on which HTTP/1.1 is spoken by hand.
pub(crate) struct Client {
    pub(crate) reader: Reader<Pin<Box<dyn Connection>>>,
}

/// A whole response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
}

impl Response {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.one(name)
    }
}

/// What a request of this method and head gets as body.
pub(crate) fn response_framing(method: &str, status: u16, head: &Head) -> Framing {
    if method == "HEAD" || matches!(status, 100..=199 | 204 | 304) {
        return Framing::Length(0);
    }
    declared(head).unwrap().unwrap_or(Framing::Close)
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = soon("connect", TcpStream::connect(address)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::on(stream)
    }

    pub(crate) fn on(stream: impl Connection + 'static) -> Self {
        Self {
            reader: Reader::new(Box::pin(stream), false),
        }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).await.unwrap();
    }

    /// Sends, unless the proxy has closed already.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        soon("send", async {
            self.reader.stream.write_all(bytes.as_ref()).await?;
            self.reader.stream.flush().await
        })
        .await
    }

    /// Ends what this client sends; it can still receive.
    pub(crate) async fn finish(&mut self) {
        _ = self.reader.stream.shutdown().await;
    }

    /// The head of a response, interim ones included.
    pub(crate) async fn head(&mut self) -> Head {
        soon("a response", self.reader.head())
            .await
            .expect("a well-formed response")
            .expect("a response before the end")
    }

    /// The next final response to a request of this method.
    pub(crate) async fn response_to(&mut self, method: &str) -> Response {
        loop {
            let head = self.head().await;
            let status = status(&head);
            if status == 101 || status >= 200 {
                let framing = response_framing(method, status, &head);
                let (body, trailers) = soon("a body", self.reader.body(framing)).await.expect("a whole body");
                return Response {
                    status,
                    head,
                    body,
                    trailers,
                };
            }
        }
    }

    pub(crate) async fn response(&mut self) -> Response {
        self.response_to("GET").await
    }

    /// Sends a request without body and gives the response.
    pub(crate) async fn get(&mut self, host: &str, target: &str) -> Response {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
            .await;
        self.response().await
    }

    /// Waits until the proxy closes, and demands that it sends nothing more.
    pub(crate) async fn closed(&mut self) {
        let rest = self.rest().await;
        assert!(rest.is_empty(), "more: {:?}", String::from_utf8_lossy(&rest));
    }

    /// Everything until the proxy closes.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        soon("the end of the connection", async {
            loop {
                match self.reader.more().await {
                    Ok(0) => break,
                    Ok(_) => {}
                    // A reset is a close, too: bytes that the proxy did not read were on the way.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                    // A TLS peer that closes without saying so.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                    Err(error) => panic!("{error}"),
                }
            }
        })
        .await;
        std::mem::take(&mut self.reader.buffer)
    }
}

pub(crate) fn status(head: &Head) -> u16 {
    let [version, status, _] = head.parts();
    assert!(version == "HTTP/1.1" || version == "HTTP/1.0", "{head:?}");
    status.parse().unwrap()
}

/// One request on a connection of its own.
pub(crate) async fn get(address: SocketAddr, host: &str, target: &str) -> Response {
    Client::connect(address).await.get(host, target).await
}
