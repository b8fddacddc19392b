//! One connection from its beginning to its end.

use std::{net::SocketAddr, rc::Rc, time::Instant};

use gatewright_ir::UpstreamProtocol;

use super::{
    Destination, Occupied, Side,
    relay::{self, Outcome},
};
use crate::{
    forward::{Client, Held, HeldListener, Reason, WholeRoute},
    proxy_header::{self, Introduced},
    upstream::{Dialed, dial_with, is_of_handshake},
};

/// How many endpoints are tried for one connection.
const MOST_ATTEMPTS: u32 = 3;

/// What is known about a connection when its bytes are to be carried.
pub(crate) struct Beginning {
    /// The table that the listener was found in.
    pub(crate) routing: Rc<Held>,
    /// The listener.
    pub(crate) listener: Rc<HeldListener>,
    /// Where it goes.
    pub(crate) route: WholeRoute,
    /// Bytes of the client that were read already, and go first.
    pub(crate) read: Vec<u8>,
}

/// Serves one connection to its end.
pub(crate) async fn serve<S: Side>(mut stream: S, client: Client, beginning: Beginning) {
    let Beginning {
        routing,
        listener,
        route,
        read,
    } = beginning;
    let count = read.len() as u64;
    let first = first_bytes(&stream, &client, &listener, read);
    let opened = open(&client, &routing, &listener, route, &first).await;
    drop((routing, first));
    let (mut backend, occupied) = match opened {
        Ok(opened) => opened,
        Err(reason) => return refuse(&stream, &listener, reason.label()),
    };
    listener.counters.received.add(count);
    let settings = &listener.listener.settings;
    let _open = client.worker.metrics.upstream_opened();
    let _counted = listener.counters.streams.open();
    let patience = settings.stream_idle_timeout;
    let outcome = relay::relay(&mut stream, &mut backend, &client, &listener.counters, patience).await;
    drop(occupied);
    if outcome == Outcome::Broken {
        stream.hang_up();
        backend.hang_up();
    }
}

/// What a backend is told before it hears the client: who that is, if it wants to know, and what the client said already.
fn first_bytes<S: Side>(stream: &S, client: &Client, listener: &HeldListener, read: Vec<u8>) -> Vec<u8> {
    let Some(version) = listener.listener.settings.proxy_header else {
        return read;
    };
    let own = || stream.socket().local_addr().ok();
    // A socket that cannot say where it is bound is about to fail anyway.
    let local = client
        .local
        .or_else(own)
        .unwrap_or(client.bound.bind.shared.address.socket);
    let introduced = Introduced {
        client: client.peer,
        local,
    };
    let mut first = proxy_header::write(version, introduced);
    first.extend_from_slice(&read);
    first
}

/// Ends a connection that goes nowhere, so that its client sees a failure and not an end.
fn refuse<S: Side>(stream: &S, listener: &HeldListener, reason: &'static str) {
    tracing::debug!(listener = %listener.listener.origin, reason, "a connection is refused");
    listener.counters.streams.refused(reason);
    stream.hang_up();
}

/// Opens a connection to an endpoint of the backend whose turn it is.
async fn open(
    client: &Client,
    routing: &Held,
    listener: &HeldListener,
    route: WholeRoute,
    first: &[u8],
) -> Result<(Dialed, Occupied), Reason> {
    let worker = &client.worker;
    let WholeRoute::To(route) = route else {
        return Err(Reason::NoRoute);
    };
    let destination = Destination::next(&route, routing, client.peer.ip(), worker)?;
    let patience = listener.listener.settings.upstream.connect_timeout;
    let mut has_waited_for_names = false;
    let mut failed: Option<(SocketAddr, Reason)> = None;
    let mut attempts = 0;
    loop {
        let Some(endpoint) = destination.choose(worker, failed.map(|(address, _)| address)) else {
            let names = destination.cluster.names().filter(|_| !has_waited_for_names);
            let names = names.ok_or(Reason::NoEndpoints)?;
            has_waited_for_names = true;
            client.deadline.set(Instant::now(), patience);
            client
                .deadline
                .guard(names.answered())
                .await
                .ok_or(Reason::NoEndpoints)?;
            continue;
        };
        // There is no other to try, or enough were tried.
        if let Some((address, reason)) = failed
            && (address == endpoint.address || attempts == MOST_ATTEMPTS)
        {
            return Err(reason);
        }
        attempts += 1;
        let now = Instant::now();
        client.deadline.set(now, patience);
        let reason = match client
            .deadline
            .guard(dial_with(&endpoint, UpstreamProtocol::Tcp, first))
            .await
        {
            Some(Ok(stream)) => {
                endpoint.note_reachable();
                return Ok((stream, Occupied::new(endpoint)));
            }
            Some(Err(error)) => {
                tracing::debug!(address = %endpoint.address, %error, "cannot connect to a backend");
                if is_of_handshake(&error) {
                    Reason::HandshakeFailed
                } else {
                    Reason::ConnectFailed
                }
            }
            None => Reason::ConnectTimeout,
        };
        worker.metrics.upstream_failed();
        endpoint.note_unreachable(now);
        failed = Some((endpoint.address, reason));
    }
}
