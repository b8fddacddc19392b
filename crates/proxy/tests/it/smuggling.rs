//! Requests that two readers might cut at different places.
//!
//! Some two thousand connections are made up from mutations of lengths, encodings, chunks and line ends. A strict reference
//! reader says which requests each of them holds, up to the first that is not beyond doubt. The backend must have seen
//! exactly a beginning of that list: never a request that nobody sent, never one with another body.

mod grammar;
mod reference;

use std::sync::Arc;

use tokio::task::JoinSet;

use self::{grammar::Case, reference::Understood};
use crate::support::{
    Backend, Client, Plan, Running,
    backend::ok,
    client::status,
    message::Framing,
    message::declared,
    running::{free_port, here},
    soon,
};

const CASES: usize = 2000;
const AT_ONCE: usize = 16;

/// The statuses that came back, and whether the connection ended by itself.
async fn play(port: u16, case: &Case, understood: &Understood) -> Vec<u16> {
    let mut client = Client::connect(here(port)).await;
    // The proxy may close while we still send; what counts is what it answered.
    _ = client.try_send(&case.bytes).await;
    if understood.is_cut_short {
        // Nothing more comes: the proxy must not wait for the rest, and must not make up an end.
        client.finish().await;
    }
    let mut statuses = Vec::new();
    soon("the answers", async {
        while let Ok(Some(head)) = client.reader.head().await {
            let status = status(&head);
            if status >= 200 {
                statuses.push(status);
                let framing = declared(&head).unwrap().unwrap_or(Framing::Close);
                client.reader.body(framing).await.expect("a whole body");
            }
        }
    })
    .await;
    statuses
}

#[tokio::test]
async fn the_backend_sees_only_requests_that_were_sent() {
    let backend = Backend::start(|_| ok("seen")).await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let running = Running::serving(plan).await;

    let cases: Vec<Arc<Case>> = grammar::cases(CASES).into_iter().map(Arc::new).collect();
    let mut playing = JoinSet::new();
    let mut played = Vec::new();
    for case in &cases {
        if playing.len() == AT_ONCE {
            played.push(playing.join_next().await.unwrap().unwrap());
        }
        let case = Arc::clone(case);
        playing.spawn(async move {
            let understood = reference::understand(&case.bytes);
            let statuses = play(port, &case, &understood).await;
            (case, understood, statuses)
        });
    }
    while let Some(result) = playing.join_next().await {
        played.push(result.unwrap());
    }
    running.stop().await;
    backend.quiet().await;

    let seen = backend.requests();
    let (mut refused, mut accepted) = (0, 0);
    for (case, understood, statuses) in &played {
        let text = String::from_utf8_lossy(&case.bytes);
        let mine = |target: &str| target.split('/').nth(2) == Some(&case.number.to_string());
        let of_case: Vec<_> = seen.iter().filter(|request| mine(&request.target)).collect();
        assert!(
            of_case.len() <= understood.requests.len(),
            "case {} {text:?}: {of_case:#?}",
            case.number
        );
        for (request, expected) in of_case.iter().zip(&understood.requests) {
            assert_eq!(request.target, expected.target, "case {} {text:?}", case.number);
            assert_eq!(request.method, expected.method, "case {} {text:?}", case.number);
            assert_eq!(request.body, expected.body, "case {} {text:?}", case.number);
            // A trailer that would frame the message, had it come in time, must not reach anybody who might heed it.
            let frames = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-length");
            assert!(!request.trailers.iter().any(frames), "case {} {text:?}", case.number);
        }
        if of_case.len() < understood.requests.len() || !understood.is_whole() {
            // Something was not accepted, so the client must have been told, unless it stopped sending itself.
            let is_told = statuses.last().is_some_and(|status| *status >= 400);
            assert!(
                is_told || understood.is_cut_short,
                "case {} {text:?}: {statuses:?}",
                case.number
            );
            refused += 1;
        } else {
            assert_eq!(
                statuses.len(),
                of_case.len(),
                "case {} {text:?}: {statuses:?}",
                case.number
            );
            accepted += 1;
        }
    }
    // The grammar must keep making both kinds, or this test says nothing.
    assert!(
        refused > CASES / 4 && accepted > CASES / 8,
        "{refused} refused, {accepted} accepted"
    );
    let prefix = |target: &str| target.starts_with("/case/");
    assert!(
        seen.iter().all(|request| prefix(&request.target)),
        "a request that nobody sent"
    );
    // Requests whose bodies broke off may be cut short at the backend, but nothing there may be ambiguous.
    for garbage in backend.garbage() {
        assert!(
            garbage.contains("unexpected end of file") || garbage.contains("reset"),
            "{garbage}"
        );
    }
}
