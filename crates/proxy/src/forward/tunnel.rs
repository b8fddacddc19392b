//! After an upgrade: bytes are copied in both directions until both sides are done.
//!
//! Neither side speaks HTTP any more, so neither connection is used again.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use super::{Incoming, Outgoing, Traffic, body::Pump};
use crate::worker::Deadline;

/// A side of a tunnel.
pub(crate) trait End: Incoming + Outgoing {
    /// From now on all bytes are payload, in both directions.
    fn become_raw(&mut self);

    /// Says that no more bytes will come.
    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// One direction.
#[derive(Default)]
struct Direction {
    pump: Pump,
    is_closed: bool,
}

impl Direction {
    fn poll<A: End, B: End>(&mut self, context: &mut Context<'_>, from: &mut A, to: &mut B) -> Result<(), ()> {
        match self.pump.poll(context, from, to) {
            Poll::Ready(Ok(())) if self.is_closed => Ok(()),
            Poll::Ready(Ok(())) => match to.poll_shutdown(context) {
                Poll::Ready(Ok(())) => {
                    self.is_closed = true;
                    Ok(())
                }
                Poll::Ready(Err(_)) => Err(()),
                Poll::Pending => Ok(()),
            },
            Poll::Ready(Err(_)) => Err(()),
            Poll::Pending => Ok(()),
        }
    }
}

/// Copies until both sides have ended, one fails, or nothing has moved for too long.
pub(crate) async fn tunnel<A: End, B: End>(
    client: &mut A,
    backend: &mut B,
    deadline: &Deadline,
    patience: Duration,
) -> Traffic {
    client.become_raw();
    backend.become_raw();
    let mut up = Direction::default();
    let mut down = Direction::default();
    let mut moved = None;
    poll_fn(|context| {
        let is_broken = up.poll(context, client, backend).is_err() || down.poll(context, backend, client).is_err();
        if is_broken || (up.is_closed && down.is_closed) {
            return Poll::Ready(());
        }
        let so_far = Some(up.pump.moved + down.pump.moved);
        if moved != so_far {
            moved = so_far;
            deadline.set(Instant::now(), patience);
        }
        deadline.poll(context)
    })
    .await;
    Traffic {
        received: up.pump.moved,
        sent: down.pump.moved,
    }
}
