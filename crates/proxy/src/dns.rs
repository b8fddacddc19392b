//! Names of backends, kept resolved.
//!
//! The runtime asks for a name with [`Resolver::watch`] and keeps the handle as long as it needs the name; workers read the
//! addresses from the handle without a lock. A task per name, on the control runtime, asks again when the records expire
//! and keeps the last good answer while the name servers fail. Nothing here knows clusters or requests.

mod lookup;

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use ahash::AHashMap;
use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::watch, task::AbortHandle};

use self::lookup::{Answer, Lookup};

/// Keeps names resolved. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Resolver(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    runtime: Handle,
    lookup: Arc<Lookup>,
    pace: Pace,
    /// What is watched, so that those who want the same share one task. Only the control plane takes this lock.
    watched: Mutex<AHashMap<Key, Weak<Watched>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    name: Box<str>,
    port: u16,
    allow_local: bool,
}

/// The addresses of one name, as long as a handle lives.
#[derive(Clone, Debug)]
pub(crate) struct Names(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    addresses: ArcSwap<Vec<SocketAddr>>,
    answered: watch::Sender<bool>,
    /// Absent for an address, which needs no resolving.
    task: OnceLock<AbortHandle>,
}

/// How often name servers are asked.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Records that expire sooner are kept this long.
    shortest: Duration,
    /// Records that live longer are asked for again after this long.
    longest: Duration,
    /// The first wait after a failure; each further one doubles it, up to `longest_retry`.
    first_retry: Duration,
    longest_retry: Duration,
    /// After how many answers in a row that the name does not exist its addresses are given up: one such answer may come
    /// from a name server that has not loaded its zone yet, but addresses that are really gone may serve another tenant.
    patience: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            shortest: Duration::from_secs(1),
            longest: Duration::from_mins(5),
            first_retry: Duration::from_secs(1),
            longest_retry: Duration::from_secs(30),
            patience: 5,
        }
    }
}

impl Resolver {
    /// A resolver by the system's configuration, whose tasks run on the given runtime.
    pub(crate) fn new(runtime: Handle) -> Self {
        Self::with(runtime, Lookup::system(), Pace::default())
    }

    fn with(runtime: Handle, lookup: Lookup, pace: Pace) -> Self {
        Self(Arc::new(Shared {
            runtime,
            lookup: Arc::new(lookup),
            pace,
            watched: Mutex::default(),
        }))
    }

    /// Keeps a name resolved until the last handle is dropped. Those who ask for the same name share its task.
    ///
    /// Without `allow_local`, addresses that lead into this host or its link are left out.
    pub(crate) fn watch(&self, name: &str, port: u16, allow_local: bool) -> Names {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let literal = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        if let Ok(address) = literal {
            return Names::fixed(usable([address], port, allow_local));
        }
        let key = Key {
            name: name.into(),
            port,
            allow_local,
        };
        let mut watched = self.0.watched.lock();
        if let Some(known) = watched.get(&key).and_then(Weak::upgrade) {
            return Names(known);
        }
        watched.retain(|_, known| known.strong_count() > 0);
        let fresh = Arc::new(Watched::new(Vec::new(), false));
        watched.insert(key.clone(), Arc::downgrade(&fresh));
        let task = keep_resolved(key, Arc::clone(&self.0.lookup), self.0.pace, Arc::downgrade(&fresh));
        _ = fresh.task.set(self.0.runtime.spawn(task).abort_handle());
        Names(fresh)
    }
}

impl Names {
    fn fixed(addresses: Vec<SocketAddr>) -> Self {
        Self(Arc::new(Watched::new(addresses, true)))
    }

    /// The addresses now, in order; none when the name has none, or before the first answer.
    pub(crate) fn addresses(&self) -> Guard<Arc<Vec<SocketAddr>>> {
        self.0.addresses.load()
    }

    /// Waits until name servers were asked for the first time, whether or not they knew the name.
    pub(crate) async fn answered(&self) {
        // The sender lives in `self`, so the wait cannot end early.
        _ = self.0.answered.subscribe().wait_for(|answered| *answered).await;
    }
}

impl Watched {
    fn new(addresses: Vec<SocketAddr>, answered: bool) -> Self {
        Self {
            addresses: ArcSwap::from_pointee(addresses),
            answered: watch::Sender::new(answered),
            task: OnceLock::new(),
        }
    }

    fn set(&self, addresses: Vec<SocketAddr>) {
        if **self.addresses.load() != addresses {
            self.addresses.store(Arc::new(addresses));
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

/// Asks again and again, until nobody holds the name any more. The task itself does not hold it.
async fn keep_resolved(key: Key, lookup: Arc<Lookup>, pace: Pace, watched: Weak<Watched>) {
    let mut failures = 0_u32;
    let mut refusals = 0_u32;
    loop {
        let answer = lookup.addresses(&key.name).await;
        let Some(watched) = watched.upgrade() else {
            return;
        };
        let wait = match answer {
            Answer::Found { addresses, lifetime } => {
                if failures > 0 {
                    tracing::info!(name = %key.name, "a backend's name resolves again");
                }
                (failures, refusals) = (0, 0);
                let usable = usable(addresses, key.port, key.allow_local);
                if usable.is_empty() {
                    tracing::warn!(name = %key.name, "a backend's name leads only to addresses of this host, which are not allowed");
                }
                watched.set(usable);
                lifetime.clamp(pace.shortest, pace.longest)
            }
            Answer::Nothing | Answer::Failed(_) => {
                if failures == 0 {
                    tracing::warn!(name = %key.name, answer = %answer, "a backend's name cannot be resolved");
                }
                refusals = if matches!(answer, Answer::Nothing) {
                    refusals + 1
                } else {
                    0
                };
                if refusals >= pace.patience {
                    watched.set(Vec::new());
                }
                let wait = pace.first_retry.saturating_mul(1 << failures.min(16));
                failures = failures.saturating_add(1);
                wait.min(pace.longest_retry)
            }
        };
        watched.answered.send_replace(true);
        drop(watched);
        tokio::time::sleep(wait).await;
    }
}

/// Addresses that may be used, in order, each once: name servers rotate their answers, which is no change.
fn usable(addresses: impl IntoIterator<Item = IpAddr>, port: u16, allow_local: bool) -> Vec<SocketAddr> {
    let mut usable: Vec<_> = addresses
        .into_iter()
        .map(|address| address.to_canonical())
        .filter(|address| allow_local || !is_local(*address))
        .map(|address| SocketAddr::new(address, port))
        .collect();
    usable.sort_unstable();
    usable.dedup();
    usable
}

/// Whether an address means this host, its link, or no single host: whoever controls a name could otherwise reach what
/// listens here for nobody else, or the metadata service of a cloud.
fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, ..] = address.octets();
            first == 0 || address.is_loopback() || address.is_link_local() || first >= 224
        }
        IpAddr::V6(address) => {
            address.is_unspecified()
                || address.is_loopback()
                || address.is_unicast_link_local()
                || address.is_multicast()
                || embedded(address).is_some_and(is_local)
        }
    }
}

/// The IPv4 address within an IPv4-compatible or a NAT64 address.
fn embedded(address: Ipv6Addr) -> Option<IpAddr> {
    let bits = address.to_bits();
    let is_embedding = matches!(bits >> 32, 0 | 0x0064_ff9b_0000_0000_0000_0000);
    let last = u32::try_from(bits & u128::from(u32::MAX)).ok()?;
    is_embedding.then(|| IpAddr::V4(last.into()))
}

#[cfg(test)]
mod tests;
