use std::time::Duration;

use gatewright_api::{Kind, ObjectName};
use tokio::time::Instant;

use super::{Job, Queue};

fn job(kind: Kind, name: &str) -> Job {
    Job::Status(ObjectName {
        kind,
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    })
}

#[test]
fn a_job_pushed_twice_is_done_once() {
    let (mut queue, now) = (Queue::default(), Instant::now());
    queue.push(job(Kind::HttpRoute, "a"));
    queue.push(job(Kind::HttpRoute, "a"));
    assert_eq!(queue.pop(now), Some(job(Kind::HttpRoute, "a")));
    assert_eq!(queue.pop(now), None);
    queue.done(job(Kind::HttpRoute, "a"), None);
    assert!(queue.is_settled());
}

#[test]
fn gateways_go_before_routes() {
    let (mut queue, now) = (Queue::default(), Instant::now());
    queue.push(job(Kind::HttpRoute, "a"));
    queue.push(job(Kind::Gateway, "b"));
    assert_eq!(queue.pop(now), Some(job(Kind::Gateway, "b")));
}

#[test]
fn a_job_pushed_while_running_runs_again_at_once() {
    let (mut queue, now) = (Queue::default(), Instant::now());
    queue.push(job(Kind::HttpRoute, "a"));
    let running = queue.pop(now).unwrap();
    queue.push(job(Kind::HttpRoute, "a"));
    assert_eq!(queue.pop(now), None, "never two at a time");
    queue.done(running, Some(now + Duration::from_mins(1)));
    assert_eq!(queue.pop(now), Some(job(Kind::HttpRoute, "a")));
}

#[test]
fn a_failed_job_waits_unless_something_new_is_wanted() {
    let (mut queue, now) = (Queue::default(), Instant::now());
    let later = now + Duration::from_secs(10);
    queue.push(job(Kind::HttpRoute, "a"));
    let running = queue.pop(now).unwrap();
    queue.done(running.clone(), Some(later));
    assert!(queue.is_settled(), "what waits after a failure is not waited for");
    assert_eq!(queue.next_due(), Some(later));
    queue.push_gently(running.clone());
    assert_eq!(queue.pop(now), None);
    queue.push(running.clone());
    assert_eq!(queue.pop(now), Some(running.clone()));
    queue.done(running.clone(), Some(later));
    assert_eq!(queue.pop(later), Some(running));
}

#[test]
fn clearing_leaves_only_what_is_running() {
    let (mut queue, now) = (Queue::default(), Instant::now());
    queue.push(job(Kind::HttpRoute, "a"));
    queue.push(job(Kind::HttpRoute, "b"));
    let running = queue.pop(now).unwrap();
    queue.push(running.clone());
    queue.clear();
    assert_eq!(queue.len(), (0, 1));
    queue.done(running, None);
    assert_eq!(queue.pop(now), None);
    assert_eq!(queue.len(), (0, 0));
}
