//! The lines that go to stdout in the binary.

use std::sync::{Arc, Mutex};

use gatewright_echo::{EchoMode, EchoSettings};

use crate::support::{Client, start, within_deadline};

#[tokio::test]
async fn each_echoed_request_writes_its_line_before_any_delay() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    let settings = EchoSettings::local(EchoMode::Http)
        .with_lines(Arc::new(move |line| sink.lock().unwrap().push(line.to_owned())));
    let server = start(settings).await;
    let mut client = Client::http1(server.addresses.plain).await;
    for path in [
        "/a?b=c",
        "/health",
        "/bench/10",
        "/status/200",
        "/retry/x?uuid=1&succeedAfter=1&responseCode=500",
    ] {
        client.get(path).await;
    }
    client.get("/retry/x?uuid=1&succeedAfter=1").await;
    let waiting = tokio::spawn(async move { client.get("/late?delay=1h").await });
    within_deadline(async {
        while lines.lock().unwrap().len() < 5 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    waiting.abort();

    let lines = &lines.lock().unwrap()[..];
    let (listening, lines) = lines.split_at(2);
    assert_eq!(
        listening,
        [
            format!("Listening on {} (http)", server.addresses.plain),
            format!("Listening on {} (h2c)", server.addresses.h2c.unwrap()),
        ]
    );
    let starts: Vec<_> = lines.iter().map(|line| line.split(" (").next().unwrap()).collect();
    assert_eq!(
        starts,
        [
            "Echoing back request made to /a?b=c to client",
            "Echoing back request made to /retry/x?uuid=1&succeedAfter=1 to client",
            "Echoing back request made to /late?delay=1h to client",
        ]
    );
    assert!(
        lines[0].ends_with(')') && lines[0].contains(" (127.0.0.1:"),
        "{}",
        lines[0]
    );
}
