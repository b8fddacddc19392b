//! The signal that a backend shall stop.
//!
//! The server holds the sending half; acceptors and connections hold a [`Shutdown`]. A server that is dropped counts
//! as one that stops, so a task that runs on its own (a WebSocket) never outlives its backend for long.

use tokio::sync::watch;

/// The receiving half.
#[derive(Clone)]
pub(crate) struct Shutdown(watch::Receiver<bool>);

/// The sending half.
pub(crate) struct ShutdownTrigger(watch::Sender<bool>);

pub(crate) fn pair() -> (ShutdownTrigger, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (ShutdownTrigger(sender), Shutdown(receiver))
}

impl ShutdownTrigger {
    pub(crate) fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Completes once a stop is wanted.
    pub(crate) async fn requested(&mut self) {
        // An error means that the server is gone, which is a stop too.
        let _ = self.0.wait_for(|stopping| *stopping).await;
    }
}
