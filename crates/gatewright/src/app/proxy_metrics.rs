//! The proxy's counters, also while it drains and nobody holds its handle any more.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use gatewright_proxy::{Metrics, Proxy};

/// Reads the counters of a proxy as long as there is one, then what they last were.
pub(super) struct ProxyMetrics {
    proxy: Weak<Proxy>,
    last: ArcSwapOption<Metrics>,
}

impl ProxyMetrics {
    pub(super) fn of(proxy: &Arc<Proxy>) -> Self {
        Self {
            proxy: Arc::downgrade(proxy),
            last: ArcSwapOption::empty(),
        }
    }

    pub(super) fn read(&self) -> Metrics {
        match self.proxy.upgrade() {
            Some(proxy) => proxy.metrics(),
            None => self
                .last
                .load_full()
                .map(|last| Metrics::clone(&last))
                .unwrap_or_default(),
        }
    }

    /// Keeps what the counters are now, for when the proxy is gone.
    pub(super) fn keep_last(&self) {
        self.last.store(Some(Arc::new(self.read())));
    }
}
