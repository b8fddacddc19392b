//! Accepts connections on one socket and starts a task for each.

use std::{io, net::SocketAddr, pin::pin, rc::Rc, time::Duration};

use futures::future::select;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use super::{BoundConnection, LocalBind, Worker, sockets, timer::Deadline};
use crate::{
    forward::{Client, Secured},
    h1, h2, tls,
};

/// How long nothing is accepted after the process ran out of descriptors or memory.
const BREATHER: Duration = Duration::from_millis(50);

/// Accepts until it is told to stop, and then what has come so far.
pub(super) async fn run(worker: Rc<Worker>, bind: Rc<LocalBind>, socket: TcpListener, stop: oneshot::Receiver<()>) {
    {
        let accepting = pin!(accept(&worker, &bind, &socket));
        select(accepting, stop).await;
    }
    // Connections that the kernel made already would be reset together with the socket. So no more are made, and those
    // that wait are taken.
    sockets::deafen(&socket);
    let Ok(socket) = socket.into_std() else { return };
    while let Ok((stream, peer)) = socket.accept() {
        let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
        if let Ok(stream) = stream {
            start(&worker, &bind, stream, peer);
        }
    }
}

async fn accept(worker: &Rc<Worker>, bind: &Rc<LocalBind>, socket: &TcpListener) {
    loop {
        match socket.accept().await {
            Ok((stream, peer)) => start(worker, bind, stream, peer),
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(address = %bind.shared.address, %error, "cannot accept connections");
                tokio::time::sleep(BREATHER).await;
            }
        }
    }
}

/// Whether only the connection that was to be accepted is lost.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

fn start(worker: &Rc<Worker>, bind: &Rc<LocalBind>, stream: TcpStream, peer: SocketAddr) {
    worker.tick();
    let deadline = worker.deadline();
    let most = bind.current().table.settings().max_connections;
    let Some(bound) = bind.admit(deadline.nudge(), most) else {
        return;
    };
    let place = bound.place;
    let task = tokio::task::spawn_local(serve(Rc::clone(worker), bound, deadline, stream, peer));
    bind.started(place, task.abort_handle());
}

/// Serves one connection to its end.
async fn serve(worker: Rc<Worker>, bound: BoundConnection, deadline: Deadline, stream: TcpStream, peer: SocketAddr) {
    let is_secured = bound.bind.current().table.tls().is_some();
    let client = Client {
        worker,
        bound,
        deadline,
        peer,
        secured: None,
    };
    if is_secured {
        // In a place of its own: connections in clear text should not carry room for it.
        Box::pin(serve_secured(stream, client)).await;
    } else {
        h1::serve_clear(stream, client).await;
    }
}

/// Makes the TLS handshake, then serves what was agreed on.
async fn serve_secured(stream: TcpStream, mut client: Client) {
    let routing = client.bound.bind.current();
    let Some(tls) = routing.table.tls() else { return };
    let timeout = routing.table.settings().header_timeout;
    match Box::pin(tls::accept(stream, tls, timeout)).await {
        Ok(accepted) => {
            drop(routing);
            client.secured = Some(Secured::new(accepted.listener, accepted.clients));
            match accepted.alpn {
                tls::Alpn::Http1 => h1::serve(accepted.stream, client).await,
                tls::Alpn::Http2 => Box::pin(h2::serve(accepted.stream, client)).await,
            }
        }
        Err(error) => {
            tracing::debug!(peer = %client.peer, %error, "TLS handshake failed");
            client.bound.bind.counters.tls_failed(error.reason());
        }
    }
}

#[cfg(test)]
mod tests;
