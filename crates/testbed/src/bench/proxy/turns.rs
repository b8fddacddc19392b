//! What the proxies' turns showed, by proxy.

use std::collections::BTreeMap;

use crate::{figures::Figures, peers::Peer};

/// The values of one measure, by proxy and round.
#[derive(Debug, Default)]
pub(super) struct Series(BTreeMap<Peer, Vec<f64>>);

impl Series {
    pub(super) fn add(&mut self, peer: Peer, value: f64) {
        self.0.entry(peer).or_default().push(value);
    }

    pub(super) fn of(&self, peer: Peer) -> &[f64] {
        self.0.get(&peer).map_or(&[], Vec::as_slice)
    }
}

/// Everything that was measured of every proxy.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub(super) efficiency: Series,
    pub(super) rate: Series,
    pub(super) p50: Series,
    pub(super) p99: Series,
    pub(super) resident: Series,
    pub(super) paced_p50: Series,
    pub(super) paced_p99: Series,
}

impl Turns {
    /// Records every series as figures of the form `proxy.h1.<measure>.<proxy>`.
    pub(super) fn record(&self, figures: &mut Figures) {
        let Self {
            efficiency,
            rate,
            p50,
            p99,
            resident,
            paced_p50,
            paced_p99,
        } = self;
        let all = [
            ("requests_per_cpu_second", "requests/CPU-s", efficiency),
            ("requests_per_second", "requests/s", rate),
            ("p50_ms", "ms", p50),
            ("p99_ms", "ms", p99),
            ("rss_mb", "MB", resident),
            ("fixed_rate_p50_us", "µs", paced_p50),
            ("fixed_rate_p99_us", "µs", paced_p99),
        ];
        for (measure, unit, series) in all {
            for peer in Peer::ALL {
                let name = format!("proxy.h1.{measure}.{}", peer.label());
                figures.add(name, unit, series.of(peer).to_vec());
            }
        }
    }
}
