//! Starts and stops backends: sockets, acceptors, draining.
//!
//! The binary calls [`run`] or [`run_all`], tests call [`EchoServer::start`]; both go through the same start. Knows
//! which port speaks what, and nothing of what is said there.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream, UdpSocket},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    EchoCounters, EchoError, EchoMode, EchoSettings,
    backend::{Backend, Ending, Session},
    grpc,
    shutdown::{self, Shutdown, ShutdownTrigger},
    stream::{HeaderCasing, ResettableStream},
    tcp,
    tls::{self, TlsFacts},
    udp,
    web::{self, HttpVersion},
};

const BACKLOG: u32 = 4096;

/// How long a client may take to say which protocol it speaks.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a backend listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoAddresses {
    /// The main port: HTTP/1, gRPC, TCP or UDP by mode.
    pub plain: SocketAddr,
    /// HTTP/2 with prior knowledge, in HTTP mode.
    pub h2c: Option<SocketAddr>,
    /// The TLS port, if the backend has a certificate.
    pub tls: Option<SocketAddr>,
}

/// A running backend. It ends when dropped; [`EchoServer::stop`] ends it in order.
pub struct EchoServer {
    /// Where it listens.
    pub addresses: EchoAddresses,
    counters: Arc<EchoCounters>,
    trigger: ShutdownTrigger,
    // Dropping the set aborts the acceptors, and with them their connections.
    tasks: JoinSet<()>,
}

/// Runs one backend until `shutdown` completes, then drains it.
pub async fn run(settings: EchoSettings, shutdown: impl Future<Output = ()>) -> Result<(), EchoError> {
    run_all(vec![settings], shutdown).await
}

/// Runs several backends until `shutdown` completes, then drains them all. None runs if one cannot start.
pub async fn run_all(settings: Vec<EchoSettings>, shutdown: impl Future<Output = ()>) -> Result<(), EchoError> {
    let mut servers = Vec::with_capacity(settings.len());
    for settings in settings {
        servers.push(EchoServer::start(settings).await?);
    }
    shutdown.await;
    futures::future::join_all(servers.into_iter().map(EchoServer::stop)).await;
    Ok(())
}

impl EchoServer {
    /// Opens the ports and serves them on the current runtime. All ports are open when this returns.
    pub async fn start(settings: EchoSettings) -> Result<Self, EchoError> {
        let counters = Arc::new(EchoCounters::default());
        let (trigger, shutdown) = shutdown::pair();
        let mut tasks = JoinSet::new();

        let addresses = if settings.mode == EchoMode::Udp {
            let address = SocketAddr::new(settings.bind_address, settings.port);
            let (socket, plain) = listen_udp(address)
                .await
                .map_err(|source| EchoError::Listen { address, source })?;
            let addresses = EchoAddresses {
                plain,
                h2c: None,
                tls: None,
            };
            let backend = Arc::new(Backend::new(&settings, &addresses, Arc::clone(&counters)));
            backend.line(|| format!("Listening on {plain} (udp)"));
            tasks.spawn(udp::serve(socket, backend, shutdown));
            addresses
        } else {
            let doors = Doors::open(&settings)?;
            let addresses = doors.addresses;
            let backend = Arc::new(Backend::new(&settings, &addresses, Arc::clone(&counters)));
            for (listener, address, door) in doors.open {
                backend.line(|| format!("Listening on {address} ({})", door.name()));
                tasks.spawn(accept(
                    listener,
                    door,
                    Arc::clone(&backend),
                    shutdown.clone(),
                    settings.drain_timeout,
                ));
            }
            addresses
        };
        Ok(Self {
            addresses,
            counters,
            trigger,
            tasks,
        })
    }

    /// What the backend has seen so far.
    pub fn counters(&self) -> &EchoCounters {
        &self.counters
    }

    /// Stops accepting, lets open connections finish within the drain timeout, and closes what is left.
    pub async fn stop(mut self) {
        self.trigger.stop();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// What is spoken on a port.
#[derive(Clone)]
struct Door {
    speaks: Speaks,
    tls: Option<TlsAcceptor>,
}

impl Door {
    fn name(&self) -> &'static str {
        match (self.speaks, self.tls.is_some()) {
            (Speaks::Http, false) => "http",
            (Speaks::Http, true) => "https",
            (Speaks::H2c, _) => "h2c",
            (Speaks::Grpc, false) => "grpc",
            (Speaks::Grpc, true) => "grpc over tls",
            (Speaks::Tcp, false) => "tcp",
            (Speaks::Tcp, true) => "tls",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Http,
    H2c,
    Grpc,
    Tcp,
}

struct Doors {
    addresses: EchoAddresses,
    open: Vec<(TcpListener, SocketAddr, Door)>,
}

impl Doors {
    fn open(settings: &EchoSettings) -> Result<Self, EchoError> {
        let (speaks, protocols): (_, &[&str]) = match settings.mode {
            EchoMode::Http => (Speaks::Http, &["h2", "http/1.1"]),
            EchoMode::Grpc => (Speaks::Grpc, &["h2"]),
            EchoMode::Tcp | EchoMode::Udp => (Speaks::Tcp, &[]),
        };
        let address = settings.bind_address;
        let (listener, plain) = listen_tcp(address, settings.port)?;
        let mut open = vec![(listener, plain, Door { speaks, tls: None })];
        let h2c = match settings.h2c_port.filter(|_| settings.mode == EchoMode::Http) {
            None => None,
            Some(port) => {
                let (listener, h2c) = listen_tcp(address, port)?;
                open.push((
                    listener,
                    h2c,
                    Door {
                        speaks: Speaks::H2c,
                        tls: None,
                    },
                ));
                Some(h2c)
            }
        };
        let tls = match &settings.tls {
            None => None,
            Some(material) => {
                let acceptor = tls::acceptor(material, protocols)?;
                let (listener, tls) = listen_tcp(address, settings.tls_port)?;
                open.push((
                    listener,
                    tls,
                    Door {
                        speaks,
                        tls: Some(acceptor),
                    },
                ));
                Some(tls)
            }
        };
        Ok(Self {
            addresses: EchoAddresses { plain, h2c, tls },
            open,
        })
    }
}

fn listen_tcp(address: IpAddr, port: u16) -> Result<(TcpListener, SocketAddr), EchoError> {
    let address = SocketAddr::new(address, port);
    let listen = || -> io::Result<_> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    };
    listen().map_err(|source| EchoError::Listen { address, source })
}

async fn listen_udp(address: SocketAddr) -> io::Result<(UdpSocket, SocketAddr)> {
    let socket = UdpSocket::bind(address).await?;
    let bound = socket.local_addr()?;
    Ok((socket, bound))
}

async fn accept(listener: TcpListener, door: Door, backend: Arc<Backend>, mut shutdown: Shutdown, drain: Duration) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            () = shutdown.requested() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                backend.counters.count_connection();
                let connection = serve(stream, peer, door.clone(), Arc::clone(&backend), shutdown.clone());
                connections.spawn(connection);
            }
            Err(error) => {
                // Mostly too many open files: accepting again at once would only burn the processor.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    drop(listener);
    let _ = timeout(drain, async { while connections.join_next().await.is_some() {} }).await;
}

async fn serve(stream: TcpStream, peer: SocketAddr, door: Door, backend: Arc<Backend>, shutdown: Shutdown) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "connection ended before it began");
        return;
    }
    let ending = Arc::new(Ending::default());
    let mut stream = ResettableStream::new(stream, Arc::clone(&ending));
    // A client that has said nothing yet is owed nothing when the backend stops.
    let mut is_stopping = shutdown.clone();
    let mut session = Session {
        backend,
        peer,
        tls: None,
        is_h2c_only: door.speaks == Speaks::H2c,
        ending,
        casing: Arc::new(HeaderCasing::default()),
        shutdown,
    };
    let Some(acceptor) = door.tls else {
        let is_http2 = match door.speaks {
            Speaks::Http | Speaks::Tcp => false,
            Speaks::Grpc => true,
            Speaks::H2c => tokio::select! {
                result = timeout(HANDSHAKE_TIMEOUT, stream.starts_with_http2()) => matches!(result, Ok(Ok(true))),
                () = is_stopping.requested() => return,
            },
        };
        return speak(stream, door.speaks, is_http2, session).await;
    };
    let handshake = tokio::select! {
        handshake = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)) => handshake,
        () = is_stopping.requested() => return,
    };
    match handshake {
        Ok(Ok(stream)) => {
            let facts = TlsFacts::of(stream.get_ref().1);
            let is_http2 = facts.negotiated_protocol == "h2" || door.speaks == Speaks::Grpc;
            session.tls = Some(facts);
            speak(stream, door.speaks, is_http2, session).await;
        }
        Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
        Err(_) => tracing::debug!(%peer, "TLS handshake took too long"),
    }
}

async fn speak<S>(stream: S, speaks: Speaks, is_http2: bool, session: Session)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let version = if is_http2 { HttpVersion::Two } else { HttpVersion::One };
    let session = Arc::new(session);
    match speaks {
        Speaks::Http | Speaks::H2c => web::serve(stream, version, session, web::answer).await,
        Speaks::Grpc => web::serve(stream, version, session, grpc::answer).await,
        Speaks::Tcp => tcp::serve(stream, session).await,
    }
}
