//! Accepts connections on one socket and starts a task for each.

use std::{io, net::SocketAddr, pin::pin, rc::Rc, time::Duration};

use futures::future::select;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use super::{BoundConnection, LocalBind, Worker, sockets, timer::Deadline};
use crate::{
    forward::{Beginning, Client, Held, Secured, WholeRoute},
    h1, h2,
    proxy_header::{self, Introduced},
    stream::{self, Side},
    tls::{self, Accepted, Begun, Passed},
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
    let routing = bound.bind.current();
    let fronts = &routing.table.settings().proxy_fronts;
    let is_from_front = !fronts.is_empty() && fronts.iter().any(|front| front.contains(peer.ip()));
    let client = Client {
        worker,
        bound,
        deadline,
        peer,
        local: None,
        secured: None,
    };
    if is_from_front {
        // In a place of its own: other connections should not carry room for it.
        drop(routing);
        return Box::pin(serve_introduced(stream, client)).await;
    }
    let beginning = routing.table.beginning();
    drop(routing);
    match beginning {
        Beginning::Request => h1::serve_clear(stream, client).await,
        Beginning::Handshake | Beginning::Anything => Box::pin(serve_other(stream, client, beginning)).await,
    }
}

/// Hears from a front who the client is, then serves the client.
async fn serve_introduced(mut stream: TcpStream, mut client: Client) {
    let routing = client.bound.bind.current();
    client
        .deadline
        .set(client.worker.recent(), routing.table.settings().header_timeout);
    let read = client.deadline.guard(proxy_header::read(&mut stream)).await;
    let beginning = routing.table.beginning();
    match read {
        Some(Ok(introduced)) => {
            if let Some(Introduced { client: peer, local }) = introduced {
                client.peer = peer;
                client.local = Some(local);
            }
        }
        failed => {
            tracing::debug!(front = %client.peer, "a front does not say who its client is");
            let reason = match failed {
                None => "proxy_header_timeout",
                Some(_) => "proxy_header_malformed",
            };
            if let Some(listener) = routing.first_listener(&client.worker) {
                listener.counters.streams.refused(reason);
            }
            stream.hang_up();
            return;
        }
    }
    client.deadline.clear();
    drop(routing);
    match beginning {
        Beginning::Request => h1::serve_clear(stream, client).await,
        Beginning::Handshake | Beginning::Anything => serve_other(stream, client, beginning).await,
    }
}

/// Serves a connection that does not begin with a request in clear text.
async fn serve_other(stream: TcpStream, client: Client, beginning: Beginning) {
    if beginning == Beginning::Anything {
        let routing = client.bound.bind.current();
        Box::pin(serve_whole(stream, client, routing, None, Vec::new())).await;
    } else {
        serve_secured(stream, client).await;
    }
}

/// Carries a connection that is routed as a whole, by the name that its client asks for, if it does.
async fn serve_whole<S: Side>(stream: S, client: Client, routing: Rc<Held>, name: Option<&str>, read: Vec<u8>) {
    let Some((listener, route)) = routing.whole(name, &client.worker) else {
        return;
    };
    let beginning = stream::Beginning {
        listener: Rc::clone(listener),
        route,
        read,
        routing: Rc::clone(&routing),
    };
    drop(routing);
    stream::serve(stream, client, beginning).await;
}

/// Makes the TLS handshake unless a backend does, then serves what was agreed on.
async fn serve_secured(stream: TcpStream, mut client: Client) {
    let routing = client.bound.bind.current();
    let Some(tls) = routing.table.tls() else { return };
    let timeout = routing.table.settings().header_timeout;
    match Box::pin(tls::accept(stream, tls, timeout)).await {
        Ok(Begun::Terminated(accepted)) => {
            let Accepted {
                stream,
                listener,
                clients,
                name,
                alpn,
            } = accepted;
            client.secured = Some(Secured::new(listener, clients));
            let found = routing.whole(name.as_deref(), &client.worker);
            if !matches!(found, Some((_, WholeRoute::OfRequests)) | None) {
                return Box::pin(serve_whole(stream, client, routing, name.as_deref(), Vec::new())).await;
            }
            drop(routing);
            match alpn {
                tls::Alpn::Http1 => h1::serve(stream, client).await,
                tls::Alpn::Http2 => Box::pin(h2::serve(stream, client)).await,
            }
        }
        Ok(Begun::Passed(passed)) => {
            let Passed { stream, hello, name } = passed;
            Box::pin(serve_whole(stream, client, routing, name.as_deref(), hello)).await;
        }
        Err(error) => {
            tracing::debug!(peer = %client.peer, %error, "TLS handshake failed");
            client.bound.bind.counters.tls_failed(error.reason());
        }
    }
}

#[cfg(test)]
mod tests;
