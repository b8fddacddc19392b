//! Opens listening sockets: one per worker, all on the same address, among which the kernel spreads what comes.

use std::{
    io,
    net::{TcpListener, UdpSocket},
    time::Duration,
};

use gatewright_ir::{ListenFailure, Transport};
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use tokio::net::TcpListener as TokioListener;

use super::{BindAddress, command};
use crate::datagram;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Sockets that are bound to one address and do not accept connections yet. Datagrams already wait in theirs.
#[derive(Debug)]
pub(crate) struct Bound {
    /// The address, with the port that the kernel chose if it was asked to.
    pub(crate) address: BindAddress,
    sockets: Vec<Socket>,
}

impl Bound {
    /// Accepts connections from now on.
    pub(crate) fn listen(self) -> io::Result<Vec<command::Socket>> {
        let transport = self.address.transport;
        let listen = |socket: Socket| match transport {
            Transport::Tcp => {
                socket.listen(BACKLOG)?;
                Ok(command::Socket::Tcp(TcpListener::from(socket)))
            }
            Transport::Udp => Ok(command::Socket::Udp(UdpSocket::from(socket))),
        };
        self.sockets.into_iter().map(listen).collect()
    }
}

/// Binds as many sockets to an address as there are workers. With port 0 the kernel chooses one port for all.
pub(crate) fn bind(address: BindAddress, count: usize) -> io::Result<Bound> {
    let mut actual = address;
    if address.socket.port() != 0 {
        // A socket that shares its port would be let in beside another program's that does the same, and each would
        // get some of the connections. One that does not share finds out.
        let probe = socket(address)?;
        probe.bind(&address.socket.into())?;
    }
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = socket(actual)?;
        socket.set_reuse_port(true)?;
        socket.bind(&actual.socket.into())?;
        socket.set_nonblocking(true)?;
        actual.socket = socket.local_addr()?.as_socket().unwrap_or(actual.socket);
        sockets.push(socket);
    }
    Ok(Bound {
        address: actual,
        sockets,
    })
}

fn socket(address: BindAddress) -> io::Result<Socket> {
    let domain = Domain::for_address(address.socket);
    let socket = match address.transport {
        Transport::Tcp => {
            let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
            socket.set_reuse_address(true)?;
            // Connections take these over from the socket that accepts them.
            socket.set_tcp_nodelay(true)?;
            socket.set_tcp_keepalive(&keepalive())?;
            socket
        }
        // No reuse of addresses: for datagrams that means to share them with whoever asks.
        Transport::Udp => {
            let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
            datagram::prepare(&socket, address.socket)?;
            socket
        }
    };
    if address.socket.is_ipv6() {
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
