//! The UDP echo: one JSON answer per datagram.
//!
//! The server runs [`serve`] as the only task of a UDP backend.

use std::sync::Arc;

use serde::Serialize;
use tokio::net::UdpSocket;

use crate::{Identity, backend::Backend, shutdown::Shutdown};

/// What is read of a datagram; the rest is lost, as the contract says.
const LONGEST_DATAGRAM: usize = 1024;

#[derive(Serialize)]
struct Reply<'datagram> {
    request: &'datagram str,
    #[serde(flatten)]
    identity: &'datagram Identity,
}

/// Answers datagrams until the backend stops.
pub(crate) async fn serve(socket: UdpSocket, backend: Arc<Backend>, mut shutdown: Shutdown) {
    let mut buffer = [0; LONGEST_DATAGRAM];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut buffer) => received,
            () = shutdown.requested() => return,
        };
        // An error here is an earlier answer that was refused; the socket itself goes on.
        let Ok((length, peer)) = received else { continue };
        backend.counters.count_request();
        let request = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default());
        backend.line(|| format!("Received UDP datagram of {length} bytes from client ({peer})"));
        let reply = Reply {
            request: &request,
            identity: &backend.identity,
        };
        let sent = match serde_json::to_vec(&reply) {
            Ok(bytes) => socket.send_to(&bytes, peer).await.map(drop),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = sent {
            tracing::debug!(%peer, %error, "datagram not answered");
        }
    }
}
