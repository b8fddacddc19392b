//! Connections: each goes to one endpoint, in turn; if that one does not answer, to the next.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{sleep, timeout},
};

use super::Backends;

/// How long an endpoint may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves one address until it is aborted. Connections that are open then stay open.
pub(super) async fn serve(address: SocketAddr, backends: watch::Receiver<Backends>) {
    let listener = loop {
        match TcpListener::bind(address).await {
            Ok(listener) => break listener,
            // The task that served the address before may not have let go of it yet.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    };
    let mut turn = 0;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // For want of descriptors, perhaps: it passes.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let known = backends.borrow().clone();
        turn = if turn + 1 < known.len() { turn + 1 } else { 0 };
        tokio::spawn(forward(stream, known, turn));
    }
}

async fn forward(mut client: TcpStream, backends: Backends, turn: usize) {
    let _ = client.set_nodelay(true);
    for address in backends.iter().cycle().skip(turn).take(backends.len()) {
        let Ok(Ok(mut backend)) = timeout(PATIENCE, TcpStream::connect(address)).await else {
            continue;
        };
        let _ = backend.set_nodelay(true);
        let _ = copy_bidirectional(&mut client, &mut backend).await;
        return;
    }
    // Nobody is there: the client sees a reset, as it would from a load balancer that has no endpoints.
    let _ = client.set_zero_linger();
}
