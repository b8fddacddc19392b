//! Receives datagrams on one socket for as long as its listener is there.

use std::{future::poll_fn, io, pin::pin, rc::Rc, task::Poll, time::Duration};

use futures::future::select;
use tokio::{net::UdpSocket, sync::oneshot};

use super::{
    flow::Flows,
    socket::{LONGEST, poll_receive},
};
use crate::worker::{LocalBind, Worker};

/// How many datagrams are handled before others get their turn.
const BATCH: u32 = 64;
/// How long nothing is received after the system ran out of something.
const BREATHER: Duration = Duration::from_millis(50);

/// Receives until it is told to stop. Flows end with it: answers could not be sent from anywhere else.
pub(crate) async fn run(worker: Rc<Worker>, bind: Rc<LocalBind>, socket: UdpSocket, stop: oneshot::Receiver<()>) {
    let flows = Flows::new(worker, bind, socket);
    let mut buffer = vec![0; LONGEST];
    {
        let receiving = pin!(receive(&flows, &mut buffer));
        select(receiving, stop).await;
    }
    flows.clear();
    // The socket is closed when the last flow has let go of it.
    while Rc::strong_count(&flows) > 1 {
        tokio::task::yield_now().await;
    }
}

async fn receive(flows: &Rc<Flows>, buffer: &mut [u8]) {
    loop {
        let failed = poll_fn(|context| {
            for _ in 0..BATCH {
                match poll_receive(&flows.socket, flows.bind.shared.address.socket, context, buffer) {
                    Poll::Ready(Ok((length, sender))) => {
                        flows.handle(sender, buffer.get(..length).unwrap_or_default());
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(error)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(None)
        })
        .await;
        match failed {
            None => tokio::task::yield_now().await,
            Some(error) if is_of_one_datagram(&error) => {}
            Some(error) => {
                tracing::warn!(address = %flows.bind.shared.address, %error, "cannot receive datagrams");
                tokio::time::sleep(BREATHER).await;
            }
        }
    }
}

/// Whether it concerns an earlier answer, or one datagram, and not the socket.
fn is_of_one_datagram(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::Interrupted
            | io::ErrorKind::InvalidData
    )
}
