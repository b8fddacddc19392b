use std::{sync::Arc, time::Duration};

use gatewright_ir::Origin;

use super::{Metrics, WorkerMetrics, merge};
use crate::{forward::Reason, worker::BindAddress};

fn summed(workers: &[Arc<WorkerMetrics>]) -> Metrics {
    merge(workers.iter())
}

#[test]
fn what_workers_count_is_added_up() {
    let workers = [Arc::new(WorkerMetrics::default()), Arc::new(WorkerMetrics::default())];
    let (listener, route) = (Origin::new("listener"), Origin::new("route"));
    for worker in &workers {
        let counters = worker.listener(&listener);
        counters.route(&route).count(200);
        counters.unrouted.count(404);
        counters.answered(Reason::NoRoute);
        counters.took(Duration::from_micros(300));
        counters.took(Duration::from_mins(1));
        counters.sent.add(10);
        let bind = worker.bind(BindAddress::tcp(([127, 0, 0, 1], 80).into()));
        bind.accepted.add(3);
        bind.closed.add(1);
        bind.tls_failed("timeout");
    }
    let open = workers[0].upstream_opened();
    drop(workers[1].upstream_opened());
    let metrics = summed(&workers);
    let requests: Vec<_> = metrics
        .requests
        .iter()
        .map(|count| (count.route.as_ref().map(Origin::as_str), count.status, count.count))
        .collect();
    assert_eq!(requests, [(None, 404, 2), (Some("route"), 200, 2)]);
    assert_eq!((metrics.answers[0].reason, metrics.answers[0].count), ("no_route", 2));
    let latency = &metrics.listeners[0].latency;
    assert_eq!(latency.buckets.first(), Some(&(0.0001, 0)));
    assert_eq!(latency.buckets.get(2), Some(&(0.0005, 2)));
    assert_eq!(latency.buckets.last(), Some(&(f64::INFINITY, 4)));
    assert!((latency.sum - 120.0006).abs() < 1e-9);
    assert_eq!(metrics.listeners[0].sent_bytes, 20);
    assert_eq!((metrics.connections[0].open, metrics.connections[0].accepted), (4, 6));
    assert_eq!(
        (metrics.tls_failures[0].reason, metrics.tls_failures[0].count),
        ("timeout", 2)
    );
    assert_eq!((metrics.upstream.open, metrics.upstream.opened), (1, 2));
    drop(open);
    assert_eq!(summed(&workers).upstream.open, 0);
}

#[test]
fn every_status_of_a_route_has_a_place() {
    let worker = Arc::new(WorkerMetrics::default());
    let counters = worker.listener(&Origin::new("listener")).route(&Origin::new("route"));
    for status in 200..260 {
        counters.count(status);
        counters.count(status);
    }
    let metrics = summed(&[worker]);
    assert_eq!(metrics.requests.len(), 60);
    assert!(metrics.requests.iter().all(|count| count.count == 2));
}

#[test]
fn listeners_that_are_gone_are_forgotten() {
    let worker = Arc::new(WorkerMetrics::default());
    worker.listener(&Origin::new("gone")).unrouted.count(200);
    worker.forget_listener(&Origin::new("gone"));
    assert_eq!(summed(&[worker]), Metrics::default());
}
