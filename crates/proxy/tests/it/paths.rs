//! The path that is routed is the path that is forwarded.
//!
//! Every spelling of a path is sent to a proxy that routes by prefix and says in a header which rule it took; the backend,
//! which reads paths in the simplest way there is, must agree with the rule.

use std::sync::Arc;

use gatewright_ir::Rule;

use crate::support::{
    Backend, Client, Plan, Running,
    gateway::{RuleChanges, headers, prefix, to},
    http2::Http2,
    running::{free_port, here},
};

/// A rule that writes its name into the request.
fn labelled(label: &str) -> Rule {
    to("backend").filters(|filters| filters.request_headers = Some(headers(&[("x-rule", label)], &[], &[])))
}

async fn rig(keep_escaped_slashes: bool) -> (Running, Arc<Backend>, u16) {
    let backend = Backend::answering("hello").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .settings(|settings| settings.keep_escaped_slashes = keep_escaped_slashes)
        .route("", prefix("/public"), labelled("public"))
        .route("", prefix("/private"), labelled("private"))
        .route("", prefix("/"), labelled("other"))
        .cluster("backend", &[backend.address]);
    (Running::serving(plan).await, Arc::new(backend), port)
}

/// The rule by which a backend would file a path, reading it as a file system would: `/`, `\` and their escapes separate,
/// dots climb, case of escapes does not matter.
fn filed(target: &str) -> &'static str {
    let path = target.split(['?', '#']).next().unwrap();
    let mut decoded = path.to_owned();
    for (escape, character) in [("%2e", "."), ("%2E", "."), ("%70", "p"), ("%72", "r"), ("%69", "i")] {
        decoded = decoded.replace(escape, character);
    }
    let mut segments = Vec::new();
    for segment in decoded.split(['/', '\\']) {
        match segment {
            "" | "." => {}
            ".." => _ = segments.pop(),
            segment => segments.push(segment),
        }
    }
    match segments.first() {
        Some(&"public") => "public",
        Some(&"private") => "private",
        _ => "other",
    }
}

/// All spellings of ways from one place to the other.
fn targets() -> Vec<String> {
    let ups = [
        "..",
        "%2e%2e",
        "%2E%2e",
        ".%2e",
        "%2e.",
        "..;",
        "..;x",
        "%252e%252e",
        "%c0%ae%c0%ae",
        "...",
        ". .",
        "..%20",
    ];
    let joints = [
        "/", "//", "/./", "%2f", "%2F", "%5c", "\\", "/;/", "/%2e/", "/;x/", "%00/", "#/", "?/",
    ];
    let mut targets = vec![
        "/".to_owned(),
        "//".to_owned(),
        "/public".to_owned(),
        "/%70rivate/x".to_owned(),
    ];
    for up in ups {
        for joint in joints {
            targets.push(format!("/public{joint}{up}{joint}private/x"));
            targets.push(format!("{joint}public/{up}/private{joint}x"));
            targets.push(format!("/private{joint}{up}"));
        }
    }
    targets.retain(|target| target.starts_with('/'));
    targets
}

#[tokio::test]
async fn rule_and_backend_agree_on_every_spelling_of_a_path() {
    for keep_escaped_slashes in [false, true] {
        let (_running, backend, port) = rig(keep_escaped_slashes).await;
        let (mut passed, mut refused) = (0, 0);
        for target in targets() {
            let before = backend.count();
            let mut client = Client::connect(here(port)).await;
            let response = client.get("a.test", &target).await;
            // A blank within the target makes the rest of it a strange version.
            if matches!(response.status, 400 | 505) {
                assert_eq!(backend.count(), before, "{target}");
                refused += 1;
                continue;
            }
            assert_eq!(response.status, 200, "{target}: {response:?}");
            let seen = backend.requests().last().unwrap().clone();
            assert_eq!(
                seen.header("x-rule"),
                Some(filed(&seen.target)),
                "{target} was forwarded as {}",
                seen.target
            );
            // What was forwarded is a fixed point: the next proxy reads the same.
            let again = client.get("a.test", &seen.target).await;
            assert_eq!(again.status, 200, "{target} {}", seen.target);
            let second = backend.requests().last().unwrap().clone();
            assert_eq!(second.target, seen.target, "{target}");
            passed += 1;
        }
        assert!(passed > 100 && refused > 50, "{passed} passed, {refused} refused");
    }
}

#[tokio::test]
async fn http2_paths_are_held_to_the_same_rules() {
    let (_running, backend, port) = rig(false).await;
    let mut client = Http2::connect(here(port)).await;
    for target in targets() {
        let Ok(uri) = format!("http://a.test{target}").parse::<http::Uri>() else {
            continue;
        };
        if uri.path_and_query().is_none_or(|path| path.as_str() != target) {
            continue;
        }
        let over_http1 = Client::connect(here(port)).await.get("a.test", &target).await.status;
        let before = backend.count();
        let request = http::Request::get(uri).body(&b""[..]).unwrap();
        let status = client.request(request).await.unwrap().status;
        assert_eq!(status, over_http1, "{target}");
        if status == 200 {
            let requests = backend.requests();
            assert_eq!(requests.len(), before + 1);
            assert_eq!(requests[before].target, requests[before - 1].target, "{target}");
            assert_eq!(
                requests[before].header("x-rule"),
                requests[before - 1].header("x-rule"),
                "{target}"
            );
        }
    }
}
