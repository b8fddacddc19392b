//! The signals of the operating system that the process answers to.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The signals, caught from when this is made.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Interrupt or terminate.
    Stop,
    /// Hang-up: look at the files again.
    Rescan,
}

impl Signals {
    pub(crate) fn catch() -> Result<Self, Failure> {
        let catch = |kind| signal(kind).map_err(|error| Failure::new(format!("cannot catch signals: {error}")));
        Ok(Self {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
            hang_up: catch(SignalKind::hangup())?,
        })
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.interrupt.recv() => Request::Stop,
            _ = self.terminate.recv() => Request::Stop,
            _ = self.hang_up.recv() => Request::Rescan,
        }
    }

    /// The next request to stop.
    pub(crate) async fn stop(&mut self) {
        while self.next().await != Request::Stop {}
    }
}
