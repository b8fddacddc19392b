//! Backends that leave before anybody could say so: what they close is asked of others, as far as that is safe.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::support::{
    Backend, Client, Plan, Running,
    backend::ok,
    running::{free_port, here},
};

fn plan(port: u16, endpoints: [std::net::SocketAddr; 2]) -> Plan {
    Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &endpoints)
}

/// A backend that is about to leave closes what it has, and may still accept what it will never answer.
#[tokio::test]
async fn a_request_whose_connection_was_closed_is_sent_to_another_endpoint() {
    let port = free_port();
    let mut leaving = Backend::manual().await;
    let staying = Backend::answering("staying").await;
    let _running = Running::with_workers(1, [plan(port, [leaving.address, staying.address])]).await;
    let mut client = Client::connect(here(port)).await;
    for _ in 0..10 {
        // Once it is its turn, it answers, and closes when the next request comes.
        let mut kept = loop {
            client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n").await;
            tokio::select! {
                mut served = leaving.accept() => {
                    served.request().await;
                    served.send(ok("leaving")).await;
                    assert_eq!(client.response().await.text(), "leaving");
                    break served;
                }
                response = client.response() => assert_eq!(response.text(), "staying"),
            }
        };
        loop {
            client.send("GET /second HTTP/1.1\r\nHost: a\r\n\r\n").await;
            tokio::select! {
                request = kept.request() => {
                    assert_eq!(request.target, "/second");
                    break;
                }
                response = client.response() => assert_eq!(response.text(), "staying"),
            }
        }
        drop(kept);
        assert_eq!(client.response().await.text(), "staying");
        assert!(!leaving.has_connection());
    }
}

#[tokio::test]
async fn a_client_that_has_its_endpoint_is_not_moved_because_an_old_connection_was_closed() {
    let port = free_port();
    let (mut one, mut two) = tokio::join!(Backend::manual(), Backend::manual());
    let sticky = plan(port, [one.address, two.address]).by_client("backend");
    let _running = Running::with_workers(1, [sticky]).await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let (mut served, own) = tokio::select! {
        served = one.accept() => (served, &mut one),
        served = two.accept() => (served, &mut two),
    };
    served.request().await;
    served.send(ok("first")).await;
    assert_eq!(client.response().await.text(), "first");
    client.send("GET /second HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(served.request().await.target, "/second");
    drop(served);
    let mut again = own.accept().await;
    assert_eq!(again.request().await.target, "/second");
    again.send(ok("second")).await;
    assert_eq!(client.response().await.text(), "second");
}

#[tokio::test]
async fn an_endpoint_that_closes_new_connections_costs_no_idempotent_request_and_repeats_no_other() {
    let port = free_port();
    let mut leaving = Backend::manual().await;
    let staying = Backend::answering("staying").await;
    let address = leaving.address;
    let closed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&closed);
    let mut closing = tokio::task::JoinSet::new();
    closing.spawn(async move {
        loop {
            leaving.accept().await.request().await;
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let _running = Running::with_workers(1, [plan(port, [address, staying.address])]).await;
    let mut client = Client::connect(here(port)).await;
    for _ in 0..30 {
        assert_eq!(client.get("a", "/").await.text(), "staying");
    }
    assert!(closed.load(Ordering::SeqCst) > 0, "it was never asked");
    let before = staying.count() + closed.load(Ordering::SeqCst);
    for _ in 0..20 {
        let mut client = Client::connect(here(port)).await;
        client
            .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")
            .await;
        let status = client.response().await.status;
        assert!([200, 502].contains(&status), "{status}");
    }
    assert_eq!(staying.count() + closed.load(Ordering::SeqCst), before + 20);
}
