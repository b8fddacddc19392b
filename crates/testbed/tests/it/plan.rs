//! The plan's promises at a small scale, with bounds ten times looser than the benchmark's targets: what fails here is a
//! change that costs what exists instead of what changed.

use std::time::Duration;

use gatewright_testbed::{
    bench::plan::{Loaded, Subject},
    memory::live_bytes,
    worlds::Layout,
};

const ROUTES: usize = 2_000;

#[test]
fn one_changed_object_among_two_thousand_routes_is_planned_at_once() {
    for layout in [Layout::OwnHosts, Layout::OneHost] {
        let Loaded { mut subject, .. } = Subject::load(layout, ROUTES, 80);
        let median = |mut times: Vec<Duration>| {
            times.sort();
            times[times.len() / 2]
        };
        let routes = median((0..51).map(|_| subject.change_route().unwrap()).collect());
        let endpoints = median((0..51).map(|_| subject.change_endpoints().unwrap()).collect());
        let bound = Duration::from_millis(10);
        assert!(routes < bound, "{layout:?}: a changed route took {routes:?}");
        assert!(endpoints < bound, "{layout:?}: changed endpoints took {endpoints:?}");
    }
}

#[test]
fn a_route_with_service_and_endpoints_costs_little_memory() {
    let before = live_bytes();
    let Loaded { subject, all, .. } = Subject::load(Layout::OwnHosts, ROUTES, 80);
    drop(all);
    let bytes = (live_bytes() - before) / i64::try_from(ROUTES).unwrap();
    drop(subject);
    assert!((500..60 * 1024).contains(&bytes), "{bytes} bytes per route");
}

#[test]
fn memory_is_given_back() {
    let before = live_bytes();
    let vector = vec![0_u8; 1_000_000];
    let during = live_bytes();
    drop(vector);
    assert!(during - before >= 1_000_000);
    assert!(live_bytes() - before < 1_000);
}
