//! A proxy that runs for one test.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

use gatewright_ir::{Fact, ListenerState};
use gatewright_proxy::{Proxy, ProxySettings};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{
    gateway::{Plan, gateways},
    soon,
};

/// A proxy, and the facts it sent.
pub(crate) struct Running {
    pub(crate) proxy: Proxy,
    pub(crate) facts: UnboundedReceiver<Fact>,
}

impl Running {
    /// A proxy that serves these gateways.
    pub(crate) async fn with(plans: impl IntoIterator<Item = Plan>) -> Self {
        Self::with_workers(2, plans).await
    }

    /// A proxy with so many workers.
    pub(crate) async fn with_workers(workers: usize, plans: impl IntoIterator<Item = Plan>) -> Self {
        let (proxy, facts) = Proxy::start(ProxySettings { workers }).unwrap();
        let running = Self { proxy, facts };
        running.apply(plans).await;
        running
    }

    /// A proxy that serves one gateway.
    pub(crate) async fn serving(plan: Plan) -> Self {
        Self::with([plan]).await
    }

    pub(crate) async fn apply(&self, plans: impl IntoIterator<Item = Plan>) {
        soon("apply", self.proxy.apply(gateways(plans))).await;
    }

    /// The facts sent so far.
    pub(crate) fn facts(&mut self) -> Vec<Fact> {
        std::iter::from_fn(|| self.facts.try_recv().ok()).collect()
    }

    pub(crate) async fn stop(self) {
        soon("shutdown", self.proxy.shutdown(Duration::from_secs(5))).await;
    }
}

/// The state a listener has by these facts.
pub(crate) fn state_of(facts: &[Fact], listener: &str) -> Option<(i64, ListenerState)> {
    facts.iter().rev().find_map(|fact| match fact {
        Fact::Listener {
            origin,
            generation,
            state,
        } if origin.as_str() == listener => Some((*generation, state.clone())),
        _ => None,
    })
}

/// A port that nothing listens on. Ports below the range from which connections take theirs, so that no connection of
/// another test can take it in between.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        // Test runs that overlap on one machine begin at different places.
        let begin = u16::try_from(std::process::id() % 200).unwrap() * 50;
        let port = 20_000 + begin.wrapping_add(NEXT.fetch_add(1, Ordering::SeqCst)) % 12_000;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// The loopback address with a port.
pub(crate) fn here(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
