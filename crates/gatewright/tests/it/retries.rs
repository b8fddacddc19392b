//! Requests that are sent again: upon status codes, broken connections and timeouts, and never more often than a route says.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use http::Response;

use crate::{
    peers::Peer,
    process::{free_port, wait_for},
    served::Served,
    web::Echoes,
    yaml::{route_with, service, service_of},
};

/// A route of everything to `echo`, with more fields of its rule.
fn route(fields: &str) -> String {
    let rule = format!("  - backendRefs:\n    - name: echo\n      port: 80\n{fields}");
    route_with("HTTPRoute", "retrying", &rule)
}

/// Serves an echo behind the route.
fn serve(fields: &str) -> (Served, Echoes) {
    let echoes = Echoes::start("http", &["echo"]);
    let served = Served::start(&(service("echo", echoes.ports()[0]) + &route(fields)));
    (served, echoes)
}

/// A path whose first so many requests fail.
fn failing(identifier: &str, failures: u32, how: &str) -> String {
    format!("/retry/x?uuid={identifier}&succeedAfter={failures}{how}")
}

const UPON_503: &str = "    retry: { codes: [503], attempts: 2, backoff: 1ms }\n";

#[test]
fn listed_codes_are_tried_again_up_to_the_limit() {
    let (served, _echoes) = serve(UPON_503);
    let status = |path: &str| served.get(path, &[]).status;
    assert_eq!(status(&failing("twice", 2, "&responseCode=503")), 200);
    assert_eq!(status(&failing("thrice", 3, "&responseCode=503")), 503);
    // Three attempts are used up, so that the next request is the one that succeeds.
    assert_eq!(status(&failing("thrice", 3, "&responseCode=503")), 200);
    assert_eq!(status(&failing("other", 1, "&responseCode=500")), 500, "not listed");
}

#[test]
fn without_retries_a_failure_is_the_answer() {
    let (served, _echoes) = serve("");
    assert_eq!(served.get(&failing("code", 1, "&responseCode=503"), &[]).status, 503);
    // The echo resets the connection.
    assert_eq!(
        served
            .send(&format!("POST {}", failing("reset", 1, "")), &[], "")
            .status,
        502
    );
}

#[test]
fn a_connection_that_breaks_is_tried_again_like_a_code() {
    let (served, _echoes) = serve("    retry: { attempts: 2, backoff: 1ms }\n");
    assert_eq!(served.get(&failing("get", 2, ""), &[]).status, 200);
    assert_eq!(
        served
            .send(&format!("POST {}", failing("post", 1, "")), &[], "body")
            .status,
        200
    );
    assert_eq!(served.get(&failing("more", 4, ""), &[]).status, 502);
}

#[test]
fn an_endpoint_that_refuses_connections_costs_no_request() {
    let echoes = Echoes::start("http", &["echo"]);
    let ports = [free_port(), echoes.ports()[0], free_port()];
    let served = Served::start(&(service_of("echo", &ports) + &route("    retry: { attempts: 2, backoff: 1ms }\n")));
    for round in 0..50 {
        assert_eq!(served.get("/", &[]).status, 200, "request {round}");
    }
}

#[test]
fn a_backend_that_is_too_slow_is_asked_again() {
    let timeouts = "    timeouts: { request: 15s, backendRequest: 300ms }\n";
    let (served, _echoes) = serve(&format!(
        "{timeouts}    retry: {{ codes: [504], attempts: 2, backoff: 1ms }}\n"
    ));
    let begun = Instant::now();
    let slow = |identifier| failing(identifier, 1, "&delayRetry=30s&responseCode=500");
    assert_eq!(served.get(&slow("once"), &[]).status, 200);
    let passed = begun.elapsed();
    assert!(
        passed >= Duration::from_millis(300) && passed < Duration::from_secs(10),
        "{passed:?}"
    );
    let (hasty, _echoes) = serve(timeouts);
    assert_eq!(
        hasty.get(&slow("once"), &[]).status,
        504,
        "no retry without a word of the route"
    );
}

#[test]
fn the_time_of_the_whole_request_bounds_all_attempts() {
    let (served, _echoes) = serve(
        "    timeouts: { request: 700ms, backendRequest: 200ms }\n    retry: { codes: [504], attempts: 50, backoff: 1ms }\n",
    );
    let begun = Instant::now();
    let response = served.get(&failing("never", 1000, "&delayRetry=30s&responseCode=500"), &[]);
    assert_eq!(response.status, 504);
    let passed = begun.elapsed();
    assert!(
        passed >= Duration::from_millis(700) && passed < Duration::from_secs(10),
        "{passed:?}"
    );
}

#[test]
fn what_is_sent_again_is_the_whole_request() {
    let attempts = AtomicUsize::new(0);
    let flaky = Peer::http(move |_| {
        let is_first = attempts.fetch_add(1, Ordering::SeqCst) == 0;
        let status = if is_first { 503 } else { 201 };
        Response::builder().status(status).body("done".to_owned()).unwrap()
    });
    let served = Served::start(&(service("echo", flaky.port) + &route(UPON_503)));
    let body = "x".repeat(10_000);
    let response = served.send("PUT /thing?a=b", &[("x-mine", "1")], &body);
    assert_eq!((response.status, response.body.as_str()), (201, "done"));
    let asked = flaky.asked();
    assert_eq!(asked.len(), 2);
    for one in asked {
        assert_eq!(
            (one.head.method.as_str(), one.head.uri.to_string().as_str()),
            ("PUT", "/thing?a=b")
        );
        assert_eq!((one.header("x-mine"), one.header("host")), (Some("1"), Some("a.test")));
        assert_eq!(one.body, body.as_bytes());
    }
}

#[test]
fn a_policy_limits_how_many_requests_to_a_service_may_be_retries() {
    let refusing = Peer::http(|_| Response::builder().status(503).body(String::new()).unwrap());
    let policy = "---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackendTrafficPolicy
metadata:
  name: calm
spec:
  targetRefs:
  - group: \"\"
    kind: Service
    name: echo
  retryConstraint:
    budget: { percent: 0, interval: 1h }
    minRetryRate: { count: 1, interval: 1h }
";
    let objects = service("echo", refusing.port) + &route(UPON_503);
    let served = Served::start(&(objects.clone() + policy));
    let asked_for = |requests: usize| {
        let before = refusing.asked().len();
        for _ in 0..requests {
            assert_eq!(served.get("/", &[]).status, 503);
        }
        refusing.asked().len() - before
    };
    // Each of two workers may retry once.
    let attempts = asked_for(20);
    assert!((21..=22).contains(&attempts), "{attempts} attempts");
    served.save(&objects);
    wait_for("retries without the policy", || (asked_for(1) == 3).then_some(()));
    assert_eq!(asked_for(10), 30);
}
