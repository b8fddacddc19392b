//! Backends that record what they received.
//!
//! [`Backend::start`] answers every request by a function; [`Backend::manual`] hands the connections to the test, which
//! then plays the backend itself.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

use super::{
    message::{Framing, Head, Reader, declared},
    soon, until,
};

/// A request as a backend received it.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
}

impl Recorded {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.one(name)
    }
}

#[derive(Debug, Default)]
struct Log {
    requests: Mutex<Vec<Recorded>>,
    /// What could not be read as a request.
    garbage: Mutex<Vec<String>>,
    connections: AtomicUsize,
    open: AtomicUsize,
}

/// A backend on loopback; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    log: Arc<Log>,
    task: AbortHandle,
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Answer = dyn Fn(&Recorded) -> Vec<u8> + Send + Sync;

/// A response with a body.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

impl Backend {
    /// Answers every request with 200 and this body.
    pub(crate) async fn answering(body: &'static str) -> Self {
        Self::start(move |_| ok(body)).await
    }

    /// Answers every request with what the function makes of it. An answer with `Connection: close` ends the connection.
    pub(crate) async fn start(answer: impl Fn(&Recorded) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Log::default());
        let answer: Arc<Answer> = Arc::new(answer);
        let task = tokio::spawn(accept(listener, Arc::clone(&log), answer)).abort_handle();
        Self { address, log, task }
    }

    /// Everything that was received so far.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.log.requests.lock().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.log.requests.lock().len()
    }

    /// The one request that was received.
    pub(crate) fn only(&self) -> Recorded {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:#?}");
        requests.into_iter().next().unwrap()
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        self.log.connections.load(Ordering::SeqCst)
    }

    /// Waits until every connection to this backend is gone, so that what it saw is all it will ever see of them.
    pub(crate) async fn quiet(&self) {
        until("the backend's connections end", || {
            self.log.open.load(Ordering::SeqCst) == 0
        })
        .await;
    }

    /// Demands that nothing was received which is not a request.
    pub(crate) fn saw_no_garbage(&self) {
        let garbage = self.log.garbage.lock();
        assert!(garbage.is_empty(), "{garbage:#?}");
    }

    /// What was received that is not a whole, unambiguous request.
    pub(crate) fn garbage(&self) -> Vec<String> {
        self.log.garbage.lock().clone()
    }

    /// A backend that the test plays itself.
    pub(crate) async fn manual() -> Manual {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, accepted) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                if sender.send(stream).is_err() {
                    return;
                }
            }
        });
        Manual {
            address,
            accepted,
            task: task.abort_handle(),
        }
    }
}

async fn accept(listener: TcpListener, log: Arc<Log>, answer: Arc<Answer>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        log.connections.fetch_add(1, Ordering::SeqCst);
        log.open.fetch_add(1, Ordering::SeqCst);
        let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
        connections.spawn(async move {
            if let Err(error) = serve(stream, &log, &*answer).await {
                log.garbage.lock().push(error.to_string());
            }
            log.open.fetch_sub(1, Ordering::SeqCst);
        });
        while connections.try_join_next().is_some() {}
    }
}

/// The framing of a request.
pub(crate) fn request_framing(head: &Head) -> io::Result<Framing> {
    Ok(declared(head)?.unwrap_or(Framing::Length(0)))
}

async fn serve(stream: TcpStream, log: &Log, answer: &Answer) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = Reader::new(stream, true);
    loop {
        let request = match request(&mut reader).await {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) => {
                let raw = String::from_utf8_lossy(&reader.raw).into_owned();
                return Err(io::Error::new(error.kind(), format!("{error} in {raw:?}")));
            }
        };
        reader.raw.clear();
        reader.raw.extend_from_slice(&reader.buffer.clone());
        let bytes = answer(&request);
        log.requests.lock().push(request);
        reader.stream.write_all(&bytes).await?;
        let head = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap_or(bytes.len());
        if String::from_utf8_lossy(&bytes[..head])
            .to_ascii_lowercase()
            .contains("connection: close")
        {
            return reader.stream.shutdown().await;
        }
    }
}

async fn request(reader: &mut Reader<TcpStream>) -> io::Result<Option<Recorded>> {
    let Some(head) = reader.head().await? else {
        return Ok(None);
    };
    let framing = request_framing(&head)?;
    let (body, trailers) = reader.body(framing).await?;
    let [method, target, version] = head.parts().map(str::to_owned);
    if version != "HTTP/1.1" || target.contains(' ') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("no request line: {}", head.line),
        ));
    }
    Ok(Some(Recorded {
        method,
        target,
        head,
        body,
        trailers,
    }))
}

/// A backend whose connections the test serves.
#[derive(Debug)]
pub(crate) struct Manual {
    pub(crate) address: SocketAddr,
    accepted: mpsc::UnboundedReceiver<TcpStream>,
    task: AbortHandle,
}

impl Drop for Manual {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Manual {
    /// The next connection of the proxy.
    pub(crate) async fn accept(&mut self) -> Served {
        let stream = soon("a connection to the backend", self.accepted.recv()).await.unwrap();
        Served {
            reader: Reader::new(stream, false),
        }
    }

    /// Whether the proxy has made a connection that was not accepted yet.
    pub(crate) fn has_connection(&mut self) -> bool {
        !self.accepted.is_empty()
    }
}

/// The backend's end of a connection.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) reader: Reader<TcpStream>,
}

impl Served {
    pub(crate) async fn head(&mut self) -> Head {
        soon("a request", self.reader.head())
            .await
            .unwrap()
            .expect("a request before the end")
    }

    /// Reads a whole request.
    pub(crate) async fn request(&mut self) -> Recorded {
        soon("a request", request(&mut self.reader))
            .await
            .unwrap()
            .expect("a request before the end")
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        soon("send", self.reader.stream.write_all(bytes.as_ref()))
            .await
            .unwrap();
    }

    /// Waits until the proxy has ended the connection.
    pub(crate) async fn ended(&mut self) {
        soon("the proxy ends the connection", async {
            while self.reader.more().await.is_ok_and(|count| count > 0) {}
        })
        .await;
    }
}
