//! Times and memory of world and plan at several sizes.
//!
//! A changed route is timed from the declared object to the finished plan: taking the object in, collecting what changed
//! and planning it. Sizes take turns within one run, so that whatever disturbs the machine disturbs all of them.

mod subject;

use std::time::Duration;

use anyhow::Context;

use super::Effort;
use crate::{
    figures::Figures,
    memory,
    process::{self, usage},
    say,
    statistics::{median, number, ratios},
    worlds::Layout,
};
pub use subject::{Loaded, Subject};

/// A size of world, with the name it has in figures.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// As in `plan.change_us.10k`.
    pub name: &'static str,
    /// How many routes.
    pub routes: usize,
}

/// The sizes of which figures are kept.
pub const SIZES: [Size; 3] = [
    Size {
        name: "1k",
        routes: 1_000,
    },
    Size {
        name: "10k",
        routes: 10_000,
    },
    Size {
        name: "100k",
        routes: 100_000,
    },
];

/// Changes timed in each round, at least; the round's value is their median.
pub(super) const CHANGES: usize = 200;

/// The port of the listener that is planned; nothing opens it.
const PORT: u16 = 80;

/// Measures all sizes.
pub fn run(effort: Effort) -> anyhow::Result<Figures> {
    let sizes = if effort.is_quick { SIZES.split_at(2).0 } else { &SIZES };
    let mut figures = Figures::default();
    measure_layout(sizes, Layout::OwnHosts, effort, &mut figures)?;
    measure_layout(sizes, Layout::OneHost, effort, &mut figures)?;
    let largest = sizes.last().map_or(1_000, |size| size.routes);
    figures.add("plan.rss_bytes_per_route", "B", vec![resident_slope(largest)?]);
    Ok(figures)
}

/// The names that figures of a layout have.
struct Names {
    change: &'static str,
    endpoints: &'static str,
    full: &'static str,
    load: &'static str,
    bytes: &'static str,
}

impl Names {
    fn of(layout: Layout) -> Self {
        match layout {
            Layout::OwnHosts => Self {
                change: "plan.change_us",
                endpoints: "plan.change_endpoints_us",
                full: "plan.full_ms",
                load: "plan.load_ms",
                bytes: "plan.bytes_per_route",
            },
            Layout::OneHost => Self {
                change: "plan.change_one_host_us",
                endpoints: "plan.change_endpoints_one_host_us",
                full: "plan.full_one_host_ms",
                load: "plan.load_one_host_ms",
                bytes: "plan.bytes_per_route_one_host",
            },
        }
    }
}

fn measure_layout(sizes: &[Size], layout: Layout, effort: Effort, figures: &mut Figures) -> anyhow::Result<()> {
    let names = Names::of(layout);
    let mut subjects = Vec::new();
    for size in sizes {
        say(format_args!("plan: {} HTTPRoutes, {}", size.routes, layout.meaning()));
        let before = memory::live_bytes();
        let Loaded { subject, load, all } = Subject::load(layout, size.routes, PORT);
        figures.add(
            format!("{}.{}", names.load, size.name),
            "ms",
            vec![load.as_secs_f64() * 1e3],
        );
        let full = (0..effort.rounds).map(|_| subject.plan_from_scratch(&all));
        let full = full.collect::<anyhow::Result<Vec<_>>>()?;
        let full = full.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        figures.add(format!("{}.{}", names.full, size.name), "ms", full);
        drop(all);
        let bytes = u64::try_from(memory::live_bytes() - before).context("a world freed more than it took")?;
        // The last and largest world stays: there, everything else has become small beside the routes.
        figures.add(names.bytes, "B", vec![number(bytes) / number(size.routes as u64)]);
        subjects.push(subject);
    }
    let mut routes = vec![Vec::new(); subjects.len()];
    let mut endpoints = vec![Vec::new(); subjects.len()];
    for _ in 0..effort.rounds {
        for ((subject, routes), endpoints) in subjects.iter_mut().zip(&mut routes).zip(&mut endpoints) {
            let times = (0..CHANGES).map(|_| subject.change_route());
            routes.push(microseconds(&times.collect::<anyhow::Result<Vec<_>>>()?));
            let times = (0..CHANGES).map(|_| subject.change_endpoints());
            endpoints.push(microseconds(&times.collect::<anyhow::Result<Vec<_>>>()?));
        }
    }
    let of = |name: &str| sizes.iter().position(|size| size.name == name);
    if let (Some(small), Some(large), Layout::OwnHosts) = (of("10k"), of("100k"), layout)
        && let (Some(small), Some(large)) = (routes.get(small), routes.get(large))
    {
        figures.add("plan.change_100k_vs_10k", "ratio", ratios(large, small));
    }
    for ((size, routes), endpoints) in sizes.iter().zip(routes).zip(endpoints) {
        figures.add(format!("{}.{}", names.change, size.name), "µs", routes);
        figures.add(format!("{}.{}", names.endpoints, size.name), "µs", endpoints);
    }
    Ok(())
}

/// The median, in microseconds.
pub(super) fn microseconds(times: &[Duration]) -> f64 {
    let times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
    median(&times)
}

/// By how much the resident set grows per route between half of so many routes and all of them. Each world is built in
/// a process of its own, for an allocator that has freed a larger world would hide a smaller one.
fn resident_slope(routes: usize) -> anyhow::Result<f64> {
    let half = routes / 2;
    let bytes = |routes: usize| -> anyhow::Result<f64> {
        let output = process::output(
            std::process::Command::new(std::env::current_exe()?).args(["resident", &routes.to_string()]),
        )?;
        output.trim().parse().context("a child process printed no number")
    };
    let (small, large) = (bytes(half)?, bytes(routes)?);
    Ok((large - small) / number((routes - half) as u64))
}

/// The resident set of this process once it holds a world and a plan of so many routes, in bytes.
pub fn resident(routes: usize) -> anyhow::Result<u64> {
    let Loaded {
        mut subject,
        load: _,
        all,
    } = Subject::load(Layout::OwnHosts, routes, PORT);
    drop(all);
    // An allocator gives freed pages back while it is used, not at once.
    for _ in 0..CHANGES {
        subject.change_route()?;
    }
    usage::resident(std::process::id())
}
