//! What figures should reach. A miss is shown, and fails nothing: a busy machine is no defect.

use std::fmt;

/// A bound for one figure.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The figure.
    pub figure: &'static str,
    /// What it says, for people.
    pub meaning: &'static str,
    bound: Bound,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    const fn at_least(figure: &'static str, bound: f64, meaning: &'static str) -> Self {
        Self {
            figure,
            meaning,
            bound: Bound::AtLeast(bound),
        }
    }

    const fn at_most(figure: &'static str, bound: f64, meaning: &'static str) -> Self {
        Self {
            figure,
            meaning,
            bound: Bound::AtMost(bound),
        }
    }

    /// Whether a value is on the right side.
    pub fn is_met(&self, value: f64) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => value >= bound,
            Bound::AtMost(bound) => value <= bound,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bound {
            Bound::AtLeast(bound) => write!(out, "≥ {bound}"),
            Bound::AtMost(bound) => write!(out, "≤ {bound}"),
        }
    }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target::at_least("proxy.h1.vs_envoy", 2.2, "requests per CPU-second, ours over Envoy's"),
    Target::at_least("proxy.h1.vs_nginx", 0.9, "requests per CPU-second, ours over nginx's"),
    Target::at_least(
        "proxy.h1.vs_haproxy",
        0.9,
        "requests per CPU-second, ours over HAProxy's",
    ),
    Target::at_least(
        "proxy.tcp.vs_haproxy",
        0.9,
        "TCP passed on: bytes and connections per CPU-second, ours over HAProxy's, the worse of both",
    ),
    Target::at_least(
        "proxy.passthrough.vs_haproxy",
        0.9,
        "TLS passed on by name: bytes and connections per CPU-second, ours over HAProxy's, the worse of both",
    ),
    Target::at_least(
        "proxy.tls.vs_nginx",
        0.9,
        "TLS ended: bytes and full handshakes per CPU-second, ours over nginx's, the worse of both",
    ),
    Target::at_most(
        "proxy.h1.p99_vs_envoy",
        0.6,
        "p99 at half of Envoy's greatest rate, ours over Envoy's",
    ),
    Target::at_most(
        "proxy.h1.last_path_vs_first",
        1.1,
        "cost of the last of 10,000 exact paths over that of the first",
    ),
    Target::at_most(
        "proxy.h1.last_prefix_vs_first",
        1.1,
        "cost of the last of 10,000 prefixes over that of the first",
    ),
    Target::at_most(
        "proxy.idle_rss_mb",
        15.0,
        "resident memory with the quickstart, idle, in MB",
    ),
    Target::at_most("plan.change_us.10k", 1_000.0, "one changed route among 10,000, in µs"),
    Target::at_most(
        "plan.change_100k_vs_10k",
        1.5,
        "one changed route among 100,000 over one among 10,000",
    ),
    Target::at_most(
        "plan.bytes_per_route",
        6_144.0,
        "memory per route with Service and EndpointSlice, in bytes",
    ),
    Target::at_most(
        "kube.accept_1k_s",
        10.0,
        "1,000 routes written to a cluster at once: all accepted so long after the last write, in s",
    ),
];

#[cfg(test)]
mod tests {
    use super::TARGETS;

    #[test]
    fn a_target_is_met_on_its_own_side_of_the_bound() {
        let of = |figure: &str| TARGETS.iter().find(|target| target.figure == figure).unwrap();
        assert!(of("proxy.h1.vs_envoy").is_met(2.2) && !of("proxy.h1.vs_envoy").is_met(2.1));
        assert!(of("plan.change_us.10k").is_met(18.0) && !of("plan.change_us.10k").is_met(1_001.0));
    }
}
