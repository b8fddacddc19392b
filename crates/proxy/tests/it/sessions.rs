//! Clients that keep their endpoint.

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use gatewright_ir::{Carrier, Rule, Session, SessionKey};
use http::Request;

use crate::support::{
    Backend, Client, Plan, Running,
    backend::ok,
    client::Response,
    gateway::{prefix, split, to},
    http2::Http2,
    running::{free_port, here},
    soon,
};

fn session(carrier: Carrier) -> Session {
    Session {
        carrier,
        name: "seat".into(),
        absolute_timeout: None,
        idle_timeout: None,
        key: SessionKey::new([7; 32]),
    }
}

fn with(mut rule: Rule, session: Session) -> Rule {
    rule.session = Some(Box::new(session));
    rule
}

async fn replicas(count: usize) -> Vec<Backend> {
    let mut replicas = Vec::new();
    for _ in 0..count {
        let backend = Backend::start(|request| ok(request.header("x-port").unwrap_or("-"))).await;
        replicas.push(backend);
    }
    replicas
}

fn addresses(replicas: &[Backend]) -> Vec<SocketAddr> {
    replicas.iter().map(|one| one.address).collect()
}

fn plan(port: u16, rule: Rule, endpoints: &[SocketAddr], generation: i64) -> Plan {
    Plan::new()
        .generation(generation)
        .http("web", port)
        .route("", prefix("/"), rule)
        .cluster("backend", endpoints)
}

/// Sends a request with a header, and says which of the replicas got it.
async fn ask(port: u16, replicas: &[Backend], field: Option<(&str, &str)>) -> (usize, Response) {
    let before: Vec<_> = replicas.iter().map(Backend::count).collect();
    let mut client = Client::connect(here(port)).await;
    let field = field
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .unwrap_or_default();
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{field}\r\n")).await;
    let response = client.response().await;
    assert_eq!(response.status, 200);
    let place = replicas
        .iter()
        .zip(before)
        .position(|(one, before)| one.count() > before);
    (place.unwrap(), response)
}

/// The cookie's name and value.
fn cookie(response: &Response) -> String {
    let set = response.header("set-cookie").expect("a cookie");
    set.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_cookie_leads_back_to_the_same_endpoint_through_any_worker_and_any_replica() {
    let replicas = replicas(8).await;
    let ports = [free_port(), free_port()];
    let rule = with(to("backend"), session(Carrier::SessionCookie));
    // Two proxies that share nothing but the plan.
    let mut running = Vec::new();
    for port in ports {
        running.push(Running::serving(plan(port, rule.clone(), &addresses(&replicas), 1)).await);
    }
    let mut seen = BTreeSet::new();
    for _ in 0..20 {
        let (place, response) = ask(ports[0], &replicas, None).await;
        seen.insert(place);
        let set = response.header("set-cookie").unwrap();
        assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{set}");
        let cookie = format!("theme=dark; {}", cookie(&response));
        for port in ports.into_iter().cycle().take(6) {
            let (again, response) = ask(port, &replicas, Some(("Cookie", &cookie))).await;
            assert_eq!(again, place);
            // The client has it already.
            assert_eq!(response.header("set-cookie"), None);
        }
    }
    assert!(seen.len() > 2, "new sessions are spread: {seen:?}");
}

#[tokio::test]
async fn forged_and_foreign_tokens_begin_a_new_session() {
    let replicas = replicas(4).await;
    let port = free_port();
    let rule = with(to("backend"), session(Carrier::SessionCookie));
    let _running = Running::serving(plan(port, rule, &addresses(&replicas), 1)).await;
    let (_, response) = ask(port, &replicas, None).await;
    let genuine = cookie(&response);
    let mut forged = genuine.clone();
    forged.replace_range(5..6, if genuine.as_bytes()[5] == b'0' { "1" } else { "0" });
    for token in [forged.as_str(), "seat=", "seat=127.0.0.1:80", "other=1", "seat"] {
        let (_, response) = ask(port, &replicas, Some(("Cookie", token))).await;
        assert!(response.header("set-cookie").is_some(), "{token}");
    }
    for address in addresses(&replicas) {
        // Long enough that no random digits look like it.
        assert!(!genuine.contains(&address.to_string()), "{genuine}");
        assert!(
            !genuine.contains(&format!("7f000001{:04x}", address.port())),
            "{genuine}"
        );
    }
}

#[tokio::test]
async fn a_session_whose_endpoint_is_gone_moves_and_says_so() {
    let mut replicas = replicas(3).await;
    let port = free_port();
    let rule = with(to("backend"), session(Carrier::SessionCookie));
    let running = Running::serving(plan(port, rule.clone(), &addresses(&replicas), 1)).await;
    let (place, response) = ask(port, &replicas, None).await;
    let old = cookie(&response);
    // Out of the plan: the token leads nowhere, although its address still listens.
    let gone = replicas.remove(place);
    running
        .apply([plan(port, rule.clone(), &addresses(&replicas), 2)])
        .await;
    let before = gone.count();
    let (place, response) = ask(port, &replicas, Some(("Cookie", &old))).await;
    assert_eq!(gone.count(), before);
    let new = cookie(&response);
    assert_ne!(new, old);
    assert_eq!(ask(port, &replicas, Some(("Cookie", &new))).await.0, place);
    // Dead, but still in the plan: the next one takes over, too.
    let all = addresses(&replicas);
    drop(replicas.remove(place));
    let (place, response) = ask(port, &replicas, Some(("Cookie", &new))).await;
    let newer = cookie(&response);
    assert_eq!(ask(port, &replicas, Some(("Cookie", &newer))).await.0, place);
    assert_eq!(all.len(), 2);
}

#[tokio::test]
async fn a_header_carries_a_session_as_well() {
    let replicas = replicas(6).await;
    let port = free_port();
    let rule = with(to("backend"), session(Carrier::Header));
    let _running = Running::serving(plan(port, rule, &addresses(&replicas), 1)).await;
    let (place, response) = ask(port, &replicas, None).await;
    assert_eq!(response.header("set-cookie"), None);
    let token = response.header("seat").unwrap().to_owned();
    for _ in 0..10 {
        assert_eq!(ask(port, &replicas, Some(("Seat", &token))).await.0, place);
    }
    let mut client = Http2::connect(here(port)).await;
    let before = replicas[place].count();
    let request = Request::get("http://a/").header("seat", &token).body(&b""[..]).unwrap();
    assert_eq!(client.request(request).await.unwrap().status, 200);
    assert_eq!(replicas[place].count(), before + 1);
}

#[tokio::test]
async fn sessions_end_by_their_timeouts() {
    let replicas = replicas(2).await;
    let port = free_port();
    let limited = Session {
        absolute_timeout: Some(Duration::from_hours(1)),
        idle_timeout: Some(Duration::from_secs(1)),
        ..session(Carrier::PermanentCookie)
    };
    let _running = Running::serving(plan(port, with(to("backend"), limited), &addresses(&replicas), 1)).await;
    let (place, response) = ask(port, &replicas, None).await;
    assert!(response.header("set-cookie").unwrap().contains("; Max-Age=3600;"));
    let mut token = cookie(&response);
    // Each use renews it.
    for _ in 0..10 {
        let (again, response) = ask(port, &replicas, Some(("Cookie", &token))).await;
        assert_eq!(again, place);
        token = cookie(&response);
    }
    // Unused for longer, it is another session: sooner or later at the other endpoint.
    soon("the session has moved", async {
        loop {
            tokio::time::sleep(Duration::from_millis(2100)).await;
            if ask(port, &replicas, Some(("Cookie", &token))).await.0 != place {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_session_counts_more_than_weights_but_not_more_than_none() {
    let (one, two) = tokio::join!(Backend::answering("one"), Backend::answering("two"));
    let port = free_port();
    let build = |shares: &[(&str, u32)], generation| {
        Plan::new()
            .generation(generation)
            .http("web", port)
            .route("", prefix("/"), with(split(shares), session(Carrier::SessionCookie)))
            .cluster("one", &[one.address])
            .cluster("two", &[two.address])
    };
    let running = Running::serving(build(&[("one", 1), ("two", 0)], 1)).await;
    let mut client = Client::connect(here(port)).await;
    let response = client.get("a", "/").await;
    assert_eq!(response.text(), "one");
    let token = cookie(&response);
    let mut ask = async |expected: &str| {
        client
            .send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {token}\r\n\r\n"))
            .await;
        assert_eq!(client.response().await.text(), expected);
    };
    running.apply([build(&[("one", 1), ("two", 1000)], 2)]).await;
    for _ in 0..20 {
        ask("one").await;
    }
    running.apply([build(&[("one", 0), ("two", 1)], 3)]).await;
    ask("two").await;
}
