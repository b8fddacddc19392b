//! Opens listening sockets: one per worker, all on the same address, among which the kernel spreads connections.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use gatewright_ir::ListenFailure;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use tokio::net::TcpListener as TokioListener;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Sockets that are bound to one address and do not accept connections yet.
#[derive(Debug)]
pub(crate) struct Bound {
    /// The address, with the port that the kernel chose if it was asked to.
    pub(crate) address: SocketAddr,
    sockets: Vec<Socket>,
}

impl Bound {
    /// Accepts connections from now on.
    pub(crate) fn listen(self) -> io::Result<Vec<TcpListener>> {
        let listen = |socket: Socket| {
            socket.listen(BACKLOG)?;
            Ok(TcpListener::from(socket))
        };
        self.sockets.into_iter().map(listen).collect()
    }
}

/// Binds as many sockets to an address as there are workers. With port 0 the kernel chooses one port for all.
pub(crate) fn bind(address: SocketAddr, count: usize) -> io::Result<Bound> {
    if address.port() != 0 {
        // A socket that shares its port would be let in beside another program's that does the same, and each would
        // get some of the connections. One that does not share finds out.
        let probe = socket(address)?;
        probe.bind(&address.into())?;
    }
    let mut actual = address;
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = socket(actual)?;
        socket.set_reuse_port(true)?;
        socket.bind(&actual.into())?;
        socket.set_nonblocking(true)?;
        actual = socket.local_addr()?.as_socket().unwrap_or(actual);
        sockets.push(socket);
    }
    Ok(Bound {
        address: actual,
        sockets,
    })
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    // Connections take these over from the socket that accepts them.
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&keepalive())?;
    if address.is_ipv6() {
        // `::` and `0.0.0.0` are two addresses that a Gateway may ask for side by side.
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// Makes a listening socket ignore whoever knocks. Connections that were made before stay.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn deafen(socket: &TokioListener) {
    use socket2::{SockFilter, SockRef};

    const RETURN: u16 = 0x06;
    let drop_all = [SockFilter::new(RETURN, 0, 0, 0)];
    // Without it, a client that connects at the very last moment is reset.
    if let Err(error) = SockRef::from(socket).attach_filter(&drop_all) {
        tracing::debug!(%error, "a listening socket cannot be filtered");
    }
}

/// Elsewhere a client that connects at the very last moment is reset.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn deafen(_socket: &TokioListener) {}

/// How soon a peer that vanished without a word is noticed: after two minutes.
pub(crate) fn keepalive() -> TcpKeepalive {
    TcpKeepalive::new()
        .with_time(Duration::from_mins(1))
        .with_interval(Duration::from_secs(15))
        .with_retries(4)
}

/// What went wrong, in the vocabulary of facts.
pub(crate) fn failure(error: &io::Error) -> ListenFailure {
    match error.kind() {
        io::ErrorKind::AddrInUse => ListenFailure::InUse,
        io::ErrorKind::AddrNotAvailable => ListenFailure::NotAvailable,
        io::ErrorKind::PermissionDenied => ListenFailure::Denied,
        _ => ListenFailure::Other(error.to_string()),
    }
}
