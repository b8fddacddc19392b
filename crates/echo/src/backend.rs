//! What all connections of one backend share, and what one connection knows.
//!
//! Built by the server; read by every protocol. Holds no sockets: a connection is ended through its [`Ending`].

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    EchoCounters, EchoSettings, Identity, LineSink, server::EchoAddresses, shutdown::Shutdown, stream::HeaderCasing,
    tls::TlsFacts,
};

/// Retry identifiers remembered at once: a load test with fresh identifiers must not fill the memory.
const REMEMBERED_RETRIES: usize = 10_000;

/// One backend.
pub(crate) struct Backend {
    pub(crate) identity: Identity,
    /// The main port, as text, as the contract writes it.
    pub(crate) port: String,
    /// The TLS port, as text; empty if there is none.
    pub(crate) tls_port: String,
    pub(crate) counters: Arc<EchoCounters>,
    lines: Option<LineSink>,
    attempts: Mutex<HashMap<String, u64>>,
}

impl Backend {
    pub(crate) fn new(settings: &EchoSettings, addresses: &EchoAddresses, counters: Arc<EchoCounters>) -> Self {
        Self {
            identity: settings.identity.clone(),
            port: addresses.plain.port().to_string(),
            tls_port: addresses
                .tls
                .map(|address| address.port().to_string())
                .unwrap_or_default(),
            counters,
            lines: settings.lines.clone(),
            attempts: Mutex::default(),
        }
    }

    pub(crate) fn line(&self, text: impl FnOnce() -> String) {
        if let Some(lines) = &self.lines {
            lines(&text());
        }
    }

    /// Counts one attempt of a retried request, and says how many there were before it.
    pub(crate) fn attempts_before(&self, identifier: &str) -> u64 {
        let mut attempts = self.attempts.lock();
        if attempts.len() >= REMEMBERED_RETRIES && !attempts.contains_key(identifier) {
            attempts.clear();
        }
        let count = attempts.entry(identifier.to_owned()).or_default();
        *count += 1;
        *count - 1
    }
}

/// One connection of a backend.
pub(crate) struct Session {
    pub(crate) backend: Arc<Backend>,
    pub(crate) peer: SocketAddr,
    pub(crate) tls: Option<TlsFacts>,
    /// Whether HTTP/1 is refused here.
    pub(crate) is_h2c_only: bool,
    pub(crate) ending: Arc<Ending>,
    pub(crate) casing: Arc<HeaderCasing>,
    pub(crate) shutdown: Shutdown,
}

/// How a request handler asks for the end of its connection.
#[derive(Default)]
pub(crate) struct Ending {
    wish: AtomicU8,
    changed: Notify,
}

/// What a handler asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A TCP reset, at once.
    Reset,
    /// Finish what is being answered, then close.
    HangUp,
}

const NONE: u8 = 0;
const HANG_UP: u8 = 1;
const RESET: u8 = 2;

impl Ending {
    pub(crate) fn reset(&self) {
        self.ask(RESET);
    }

    pub(crate) fn hang_up(&self) {
        self.ask(HANG_UP);
    }

    pub(crate) fn is_reset(&self) -> bool {
        self.wish.load(Ordering::Acquire) == RESET
    }

    /// Completes when the handler has asked for an end.
    pub(crate) async fn wished(&self) -> Wish {
        loop {
            match self.wish.load(Ordering::Acquire) {
                NONE => self.changed.notified().await,
                RESET => return Wish::Reset,
                _ => return Wish::HangUp,
            }
        }
    }

    fn ask(&self, wish: u8) {
        // The stronger wish stays: a reset is not softened by a later hang-up.
        self.wish.fetch_max(wish, Ordering::AcqRel);
        // One waiter, and a permit is kept if it does not wait yet.
        self.changed.notify_one();
    }
}
