//! Listeners come, change and go at run time, and what the proxy reports about them.

use std::{net::TcpListener, time::Duration};

use gatewright_ir::{Fact, ListenFailure, ListenerState};
use tokio::net::TcpStream;

use crate::support::{
    Backend, Client, Plan, Running,
    backend::ok,
    client::get,
    running::{free_port, here, state_of},
    until,
};

fn listening(facts: &[Fact], listener: &str, generation: i64, port: u16) {
    let expected = (generation, ListenerState::Listening(vec![here(port)]));
    assert_eq!(state_of(facts, listener), Some(expected), "{facts:?}");
}

fn gone(facts: &[Fact], listener: &str) -> bool {
    facts
        .iter()
        .any(|fact| matches!(fact, Fact::Gone { origin } if origin.as_str() == listener))
}

#[tokio::test]
async fn facts_say_what_listens_and_only_when_it_changes() {
    let backend = Backend::answering("hello").await;
    let (one, two) = (free_port(), free_port());
    let plan = |generation| {
        Plan::new()
            .generation(generation)
            .http("one", one)
            .all_to("backend")
            .http("two", two)
            .all_to("backend")
            .cluster("backend", &[backend.address])
    };
    let mut running = Running::serving(plan(1)).await;
    let facts = running.facts();
    listening(&facts, "gateway/one", 1, one);
    listening(&facts, "gateway/two", 1, two);
    assert_eq!(facts.len(), 2, "{facts:?}");

    running.apply([plan(1)]).await;
    assert_eq!(running.facts(), []);
    running.apply([plan(2)]).await;
    let facts = running.facts();
    listening(&facts, "gateway/one", 2, one);
    listening(&facts, "gateway/two", 2, two);

    running.apply([]).await;
    let facts = running.facts();
    assert!(gone(&facts, "gateway/one") && gone(&facts, "gateway/two"), "{facts:?}");
}

#[tokio::test]
async fn a_listener_on_two_addresses_listens_on_both() {
    let backend = Backend::answering("hello").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .addresses(&["127.0.0.1", "127.0.0.2"])
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let mut running = Running::serving(plan).await;
    let Some((1, ListenerState::Listening(mut addresses))) = state_of(&running.facts(), "gateway/web") else {
        panic!("not listening");
    };
    addresses.sort();
    assert_eq!(addresses, [here(port), ([127, 0, 0, 2], port).into()]);
    for address in addresses {
        assert_eq!(get(address, "a.test", "/").await.text(), "hello");
    }
}

#[tokio::test]
async fn a_port_that_is_taken_fails_its_own_listener_only() {
    let backend = Backend::answering("hello").await;
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = occupied.local_addr().unwrap().port();
    let free = free_port();
    let plan = |generation| {
        Plan::new()
            .generation(generation)
            .http("taken", taken)
            .all_to("backend")
            .http("absent", free_port())
            .addresses(&["192.0.2.1"])
            .all_to("backend")
            .http("free", free)
            .all_to("backend")
            .cluster("backend", &[backend.address])
    };
    let mut running = Running::serving(plan(1)).await;
    let facts = running.facts();
    let expected = ListenerState::Failed {
        address: here(taken),
        failure: ListenFailure::InUse,
    };
    assert_eq!(state_of(&facts, "gateway/taken"), Some((1, expected)));
    assert!(matches!(
        state_of(&facts, "gateway/absent"),
        Some((
            1,
            ListenerState::Failed {
                failure: ListenFailure::NotAvailable,
                ..
            }
        ))
    ));
    listening(&facts, "gateway/free", 1, free);
    assert_eq!(get(here(free), "a.test", "/").await.text(), "hello");

    // Once the port is free, the next application opens it.
    drop(occupied);
    running.apply([plan(2)]).await;
    listening(&running.facts(), "gateway/taken", 2, taken);
    assert_eq!(get(here(taken), "a.test", "/").await.text(), "hello");
}

#[tokio::test]
async fn listeners_come_and_go_without_disturbing_others() {
    let backend = Backend::answering("hello").await;
    let (kept, other) = (free_port(), free_port());
    let base = || {
        Plan::new()
            .http("kept", kept)
            .all_to("backend")
            .cluster("backend", &[backend.address])
    };
    let running = Running::serving(base()).await;
    let mut client = Client::connect(here(kept)).await;
    for _ in 0..10 {
        assert_eq!(client.get("a.test", "/").await.text(), "hello");
        running.apply([base().http("other", other).all_to("backend")]).await;
        assert_eq!(client.get("a.test", "/").await.text(), "hello");
        assert_eq!(get(here(other), "a.test", "/").await.text(), "hello");
        running.apply([base()]).await;
        assert!(TcpStream::connect(here(other)).await.is_err(), "the port is still open");
    }
    assert_eq!(client.get("a.test", "/").await.text(), "hello");
}

#[tokio::test]
async fn a_listener_that_shares_a_port_leaves_the_port_to_the_others() {
    let backend = Backend::start(|request| ok(request.header("host").unwrap())).await;
    let port = free_port();
    let base = || {
        Plan::new()
            .http("a", port)
            .hostname("a.test")
            .all_to("backend")
            .cluster("backend", &[backend.address])
    };
    let both = || base().http("b", port).hostname("b.test").all_to("backend");
    let mut running = Running::serving(both()).await;
    running.facts();
    let mut client = Client::connect(here(port)).await;
    assert_eq!(client.get("a.test", "/").await.text(), "a.test");
    assert_eq!(client.get("b.test", "/").await.text(), "b.test");
    running.apply([base()]).await;
    assert!(gone(&running.facts(), "gateway/b"));
    // The same connection: it belongs to the port, not to a listener.
    assert_eq!(client.get("b.test", "/").await.status, 404);
    assert_eq!(
        Client::connect(here(port)).await.get("a.test", "/").await.text(),
        "a.test"
    );
}

#[tokio::test]
async fn a_listener_that_moves_to_another_port_serves_there_and_drains_here() {
    let mut backend = Backend::manual().await;
    let (old, new) = (free_port(), free_port());
    let plan = |port, generation| {
        Plan::new()
            .generation(generation)
            .http("web", port)
            .all_to("backend")
            .cluster("backend", &[backend.address])
    };
    let (first, second) = (plan(old, 1), plan(new, 2));
    let mut running = Running::serving(first).await;
    let mut client = Client::connect(here(old)).await;
    client.send("GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    running.apply([second]).await;
    listening(&running.facts(), "gateway/web", 2, new);
    // The request that was under way is answered, and the connection then ends.
    // The backend closes, so that the next request comes on a new connection whichever worker gets it.
    served
        .send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlate")
        .await;
    let response = client.response().await;
    assert_eq!(response.text(), "late");
    assert!(
        response
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close")),
        "{response:?}"
    );
    client.closed().await;
    let mut client = Client::connect(here(new)).await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    served.send(ok("new")).await;
    assert_eq!(client.response().await.text(), "new");
}

#[tokio::test]
async fn connections_of_a_removed_listener_are_ended_idle_ones_at_once_and_busy_ones_in_time() {
    let mut backend = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .settings(|settings| settings.drain_timeout = Duration::from_millis(300))
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let running = Running::serving(plan).await;
    let mut idle = Client::connect(here(port)).await;
    idle.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut first = backend.accept().await;
    first.request().await;
    first.send(ok("one")).await;
    assert_eq!(idle.response().await.text(), "one");

    let mut busy = Client::connect(here(port)).await;
    busy.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let begun = std::time::Instant::now();
    running.apply([]).await;
    idle.closed().await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    // Nobody ever answers the other one.
    busy.rest().await;
    until("no connection is left", || {
        running
            .proxy
            .metrics()
            .connections
            .iter()
            .map(|bind| bind.open)
            .sum::<u64>()
            == 0
    })
    .await;
}

#[tokio::test]
async fn changed_settings_hold_for_new_connections() {
    let backend = Backend::answering("hello").await;
    let port = free_port();
    let plan = |allow| {
        Plan::new()
            .http("web", port)
            .settings(|settings| settings.allow_underscores = allow)
            .all_to("backend")
            .cluster("backend", &[backend.address])
    };
    let running = Running::serving(plan(false)).await;
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\nX_A: 1\r\n\r\n";
    let mut client = Client::connect(here(port)).await;
    client.send(request).await;
    assert_eq!(client.response().await.status, 400);
    running.apply([plan(true)]).await;
    let mut client = Client::connect(here(port)).await;
    client.send(request).await;
    assert_eq!(client.response().await.status, 200);
}

#[tokio::test]
async fn a_port_that_turns_from_clear_text_to_tls_speaks_tls() {
    use crate::support::tls::{certificate, connect, trusting};
    let backend = Backend::answering("hello").await;
    let cert = certificate(&["a.test"]);
    let port = free_port();
    let clear = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let secure = Plan::new()
        .https("web", port, &[&cert])
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let running = Running::serving(clear).await;
    assert_eq!(get(here(port), "a.test", "/").await.text(), "hello");
    running.apply([secure]).await;
    let stream = connect(here(port), &trusting(&[&cert], &[]), "a.test").await.unwrap();
    assert_eq!(Client::on(stream).get("a.test", "/").await.text(), "hello");
}
