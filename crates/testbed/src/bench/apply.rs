//! What one changed route costs in the proxy, once it is planned: the compiled tables follow, nothing is built anew.
//!
//! The proxy runs in this process, with one worker and one listener, and carries no traffic. Measured apart from planning,
//! because a proxy in another process would do this part there.

use std::time::Instant;

use anyhow::{Context, bail};
use gatewright_ir::{Fact, ListenerState};
use gatewright_proxy::{Proxy, ProxySettings};

use super::{
    Effort,
    plan::{CHANGES, Loaded, SIZES, Size, Subject, microseconds},
};
use crate::{figures::Figures, memory, process::free_address, say, statistics::number, worlds::Layout};

/// Measures all sizes.
pub fn run(effort: Effort) -> anyhow::Result<Figures> {
    let sizes = if effort.is_quick { SIZES.split_at(2).0 } else { &SIZES };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut figures = Figures::default();
    for size in sizes {
        for (layout, change, bytes) in [
            (Layout::OwnHosts, "proxy.apply_change_us", Some("proxy.bytes_per_route")),
            (Layout::OneHost, "proxy.apply_change_one_host_us", None),
        ] {
            say(format_args!(
                "proxy: changes among {} routes, {}",
                size.routes,
                layout.meaning()
            ));
            let (times, held) = runtime.block_on(measure(layout, *size, effort))?;
            figures.add(format!("{change}.{}", size.name), "µs", times);
            if let Some(bytes) = bytes {
                figures.add(bytes, "B", vec![held]);
            }
        }
    }
    Ok(figures)
}

/// The median of each round's changes, and what the tables hold per route.
async fn measure(layout: Layout, size: Size, effort: Effort) -> anyhow::Result<(Vec<f64>, f64)> {
    let port = free_address()?.port();
    let Loaded { mut subject, .. } = Subject::load(layout, size.routes, port);
    let (proxy, mut facts) = Proxy::start(ProxySettings { workers: 1 })?;
    let before = memory::live_bytes();
    proxy.apply(subject.gateways()).await;
    let held = u64::try_from(memory::live_bytes() - before).context("the proxy freed more than it took")?;
    match facts.try_recv() {
        Ok(Fact::Listener {
            state: ListenerState::Listening(_),
            ..
        }) => {}
        other => bail!("the proxy does not listen: {other:?}"),
    }
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds {
        let mut times = Vec::new();
        for _ in 0..CHANGES {
            subject.change_route()?;
            let gateways = subject.gateways();
            let started = Instant::now();
            proxy.apply(gateways).await;
            times.push(started.elapsed());
        }
        rounds.push(microseconds(&times));
    }
    proxy.shutdown(std::time::Duration::ZERO).await;
    Ok((rounds, number(held) / number(size.routes as u64)))
}
