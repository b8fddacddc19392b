//! TLS to backends: who they must be, what they are shown, and that nothing is sent to anybody else.

use std::sync::Arc;

use gatewright_ir::{
    AuthProtocol, Certificate, ClusterId, ExternalAuth, HostPattern, PrivateKey, Security, SubjectName, Target, Trust,
    UpstreamTls,
};

use crate::support::{
    Backend, Client, Plan, Running,
    client::get,
    gateway::RuleChanges,
    pki::{Ca, TlsFront},
    prefix,
    running::{free_port, here},
    soon, to, until,
};

/// TLS with a backend of this name, which one of this authority's certificates proves.
pub(crate) fn named(hostname: &str, ca: &Ca) -> Security {
    with_names(hostname, ca, Vec::new())
}

fn with_names(hostname: &str, ca: &Ca, names: Vec<SubjectName>) -> Security {
    Security::Tls(Arc::new(UpstreamTls {
        hostname: hostname.into(),
        trust: Trust::Given(vec![Arc::clone(&ca.authority)]),
        names,
    }))
}

fn dns(name: &str) -> SubjectName {
    SubjectName::Dns(HostPattern::parse(name).unwrap())
}

fn uri(name: &str) -> SubjectName {
    SubjectName::Uri(name.into())
}

/// One cluster behind one listener.
pub(crate) fn plan(port: u16, front: &TlsFront, security: Security) -> Plan {
    Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[front.address])
        .secured("backend", security)
}

/// How often the proxy answered for this reason.
pub(crate) fn answers(running: &Running, reason: &str) -> u64 {
    let metrics = running.proxy.metrics();
    let of_reason = metrics.answers.iter().filter(|answer| answer.reason == reason);
    of_reason.map(|answer| answer.count).sum()
}

#[tokio::test]
async fn a_backend_that_proves_its_name_is_spoken_to_over_tls() {
    let ca = Ca::new("ca");
    let backend = Backend::answering("hello").await;
    let front = TlsFront::before(backend.address, &ca.issue(&["shop.internal"]), &["http/1.1"]).await;
    let port = free_port();
    let _running = Running::with_workers(1, [plan(port, &front, named("shop.internal", &ca))]).await;
    for _ in 0..5 {
        assert_eq!(get(here(port), "a.test", "/").await.text(), "hello");
    }
    let greetings = front.greetings();
    assert_eq!(greetings.len(), 1, "the connection is kept: {greetings:?}");
    assert_eq!(greetings[0].name.as_deref(), Some("shop.internal"));
    assert_eq!(greetings[0].protocol.as_deref(), Some("http/1.1"));
    assert_eq!(greetings[0].shown, None);
    assert_eq!(backend.requests()[0].header("host"), Some("a.test"));
}

#[tokio::test]
async fn a_backend_that_does_not_agree_on_a_protocol_is_spoken_to_in_http1() {
    let ca = Ca::new("ca");
    let backend = Backend::answering("hello").await;
    let front = TlsFront::before(backend.address, &ca.issue(&["shop.internal"]), &[]).await;
    let port = free_port();
    let _running = Running::serving(plan(port, &front, named("shop.internal", &ca))).await;
    assert_eq!(get(here(port), "a.test", "/").await.text(), "hello");
}

#[tokio::test]
async fn a_backend_that_proves_nothing_of_the_kind_gets_no_request() {
    let (ca, other) = (Ca::new("ca"), Ca::new("other"));
    // The same name as the right authority, and another key.
    let impostor = Ca::new("ca");
    let backend = Backend::answering("secret").await;
    for (what, certificate) in [
        ("another authority", other.issue(&["shop.internal"])),
        (
            "an authority that only has the name",
            impostor.issue(&["shop.internal"]),
        ),
        ("its time is over", ca.expired(&["shop.internal"])),
        ("another name", ca.issue(&["cart.internal"])),
        ("the name below a wildcard", ca.issue(&["*.shop.internal"])),
        ("no name", ca.issue(&[])),
        ("only a URI", ca.issue(&["spiffe://cluster.local/shop"])),
    ] {
        let front = TlsFront::before(backend.address, &certificate, &["http/1.1"]).await;
        let port = free_port();
        let running = Running::serving(plan(port, &front, named("shop.internal", &ca))).await;
        let response = get(here(port), "a.test", "/").await;
        assert_eq!(
            (response.status, response.text()),
            (502, "no secure connection can be made to the backend\n"),
            "{what}"
        );
        until("it is counted", || answers(&running, "tls_handshake_failed") == 1).await;
        assert!(running.proxy.metrics().upstream.failed > 0, "{what}");
    }
    assert_eq!(backend.count(), 0);
}

#[tokio::test]
async fn a_backend_in_clear_text_gets_no_request() {
    let ca = Ca::new("ca");
    let mut backend = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address])
        .secured("backend", named("shop.internal", &ca));
    let _running = Running::serving(plan).await;
    let served = async {
        let mut served = backend.accept().await;
        let begun = soon("a handshake", served.reader.take(3)).await.unwrap();
        served
            .send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            .await;
        begun
    };
    let (begun, response) = tokio::join!(served, get(here(port), "a.test", "/"));
    assert_eq!(begun, [22, 3, 1], "it begins with a handshake and not with a request");
    assert_eq!(response.status, 502);
}

#[tokio::test]
async fn names_of_the_policy_take_the_place_of_the_name_asked_for() {
    let ca = Ca::new("ca");
    let backend = Backend::answering("hello").await;
    let certificate = ca.issue(&[
        "real.internal",
        "*.wide.internal",
        "spiffe://cluster.local/ns/shop/sa/web",
    ]);
    let front = TlsFront::before(backend.address, &certificate, &["http/1.1"]).await;
    for (names, expected) in [
        (vec![dns("real.internal")], 200),
        (vec![dns("other.internal"), dns("real.internal")], 200),
        (vec![dns("one.wide.internal")], 200),
        (vec![dns("*.wide.internal")], 200),
        (vec![dns("*.internal")], 200),
        (vec![uri("spiffe://cluster.local/ns/shop/sa/web")], 200),
        (
            vec![dns("other.internal"), uri("spiffe://cluster.local/ns/shop/sa/web")],
            200,
        ),
        (vec![dns("other.internal")], 502),
        (vec![dns("two.one.wide.internal")], 502),
        (vec![dns("*.other.internal")], 502),
        (vec![uri("spiffe://cluster.local/ns/shop/sa/we")], 502),
        (vec![uri("spiffe://cluster.local/ns/shop/sa/web/")], 502),
        (vec![uri("real.internal")], 502),
        // Without any, it is the name asked for that counts, and the certificate does not hold it.
        (vec![], 502),
    ] {
        let port = free_port();
        let security = with_names("asked.internal", &ca, names.clone());
        let _running = Running::serving(plan(port, &front, security)).await;
        assert_eq!(get(here(port), "a.test", "/").await.status, expected, "{names:?}");
    }
    let greetings = front.greetings();
    assert!(
        greetings
            .iter()
            .all(|greeting| greeting.name.as_deref() == Some("asked.internal")),
        "{greetings:?}"
    );
}

#[tokio::test]
async fn a_gateway_shows_its_certificate_to_backends_that_ask() {
    let (ca, clients, others) = (Ca::new("ca"), Ca::new("clients"), Ca::new("others"));
    let backend = Backend::answering("hello").await;
    let certificate = ca.issue(&["shop.internal"]);
    let front = TlsFront::demanding(backend.address, &certificate, &["http/1.1"], Some(&clients)).await;
    let identity = clients.issue(&["gateway.internal"]);
    let mut broken = Certificate::clone(&identity);
    broken.key = PrivateKey::new(b"not a key".to_vec());
    let port = free_port();
    let security = named("shop.internal", &ca);
    let none = plan(port, &front, security.clone());
    let running = Running::serving(none.clone()).await;
    for (plan, is_answered) in [
        (none.clone(), false),
        (none.clone().identity(&identity), true),
        (none.clone().identity(&others.issue(&["gateway.internal"])), false),
        (none.clone().identity(&identity), true),
        // A connection that was made while it was good carries nothing for one that is not.
        (none.clone().identity(&Arc::new(broken)), false),
        (none, false),
    ] {
        running.apply([plan]).await;
        let status = get(here(port), "a.test", "/").await.status;
        assert_eq!(status == 200, is_answered, "{status} {:?}", front.failures());
        assert!(matches!(status, 200 | 502), "{status}");
    }
    assert_eq!(backend.count(), 2);
    let greetings = front.greetings();
    assert!(
        greetings
            .iter()
            .all(|greeting| greeting.shown.as_ref() == identity.chain.first())
    );
}

#[tokio::test]
async fn connections_are_not_shared_across_policies() {
    let ca = Ca::new("ca");
    let backend = Backend::answering("hello").await;
    let certificate = ca.issue(&["one.internal", "two.internal"]);
    let front = TlsFront::before(backend.address, &certificate, &["http/1.1"]).await;
    let port = free_port();
    // Clusters of one address: two policies, one of them twice, one that cannot be met, and clear text.
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/one"), to("one"))
        .route("", prefix("/again"), to("again"))
        .route("", prefix("/two"), to("two"))
        .route("", prefix("/strict"), to("strict"))
        .route("", prefix("/clear"), to("clear"))
        .cluster("one", &[front.address])
        .secured("one", named("one.internal", &ca))
        .cluster("again", &[front.address])
        .secured("again", named("one.internal", &ca))
        .cluster("two", &[front.address])
        .secured("two", named("two.internal", &ca))
        .cluster("strict", &[front.address])
        .secured("strict", with_names("one.internal", &ca, vec![uri("spiffe://nobody")]))
        .cluster("clear", &[front.address]);
    let running = Running::with_workers(1, [plan.clone()]).await;
    let mut client = Client::connect(here(port)).await;
    for _ in 0..3 {
        for (path, expected) in [("/one", 200), ("/again", 200), ("/two", 200), ("/strict", 502)] {
            assert_eq!(client.get("a.test", path).await.status, expected, "{path}");
        }
    }
    let asked = |front: &TlsFront| -> Vec<String> {
        let greetings = front.greetings().into_iter();
        greetings.filter_map(|greeting| greeting.name).collect()
    };
    assert_eq!(
        asked(&front),
        ["one.internal", "two.internal"],
        "equal policies share, others do not"
    );
    assert_ne!(client.get("a.test", "/clear").await.status, 200);
    // A table made anew from equal pieces keeps the connections.
    let equal = plan
        .clone()
        .secured("one", named("one.internal", &ca))
        .secured("two", named("two.internal", &ca));
    running.apply([equal]).await;
    assert_eq!(client.get("a.test", "/one").await.status, 200);
    assert_eq!(client.get("a.test", "/two").await.status, 200);
    assert_eq!(asked(&front).len(), 2);
    // What was believed a moment ago is not believed for the sake of a connection that is still open.
    let stranger = Ca::new("stranger");
    running
        .apply([plan.secured("one", named("one.internal", &stranger))])
        .await;
    assert_eq!(client.get("a.test", "/one").await.status, 502);
    assert_eq!(client.get("a.test", "/again").await.status, 200);
}

#[tokio::test]
async fn nothing_is_sent_where_the_policy_cannot_be_honoured() {
    let backend = Backend::answering("secret").await;
    let real = Backend::answering("real").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/direct"), to("refused"))
        .route("", prefix("/mirror"), to("real").mirror("refused", 1, 1))
        .route(
            "",
            prefix("/asked"),
            to("real").filters(|filters| filters.auth = Some(Box::new(asking("refused")))),
        )
        .cluster("real", &[real.address])
        .cluster("refused", &[backend.address])
        .secured("refused", Security::Refused);
    let running = Running::serving(plan).await;
    let response = get(here(port), "a.test", "/direct").await;
    assert_eq!(
        (response.status, response.text()),
        (500, "the backend cannot be reached as securely as it must be\n")
    );
    until("it is counted", || answers(&running, "backend_tls_refused") == 1).await;
    assert_eq!(get(here(port), "a.test", "/mirror").await.text(), "real");
    assert_eq!(get(here(port), "a.test", "/asked").await.status, 403);
    assert_eq!((backend.connections(), backend.count()), (0, 0));
}

pub(crate) fn asking(cluster: &str) -> ExternalAuth {
    ExternalAuth {
        target: Target::Cluster(ClusterId::new(cluster)),
        protocol: AuthProtocol::Http {
            path: "".into(),
            request_headers: Box::default(),
            response_headers: None,
        },
        max_body: None,
    }
}

/// Where a process finds the system's authorities, instead of where the system has them.
const SYSTEM: &str = "SSL_CERT_FILE";

/// Authorities of the system are read once per process, so this test runs in one of its own, in which they are in a file.
#[tokio::test]
async fn only_the_systems_authorities_are_believed_where_they_are_asked_for() {
    let Ok(file) = std::env::var(SYSTEM) else {
        let file = std::env::temp_dir().join(format!("gatewright-authorities-{}.pem", std::process::id()));
        let name = "backend_tls::only_the_systems_authorities_are_believed_where_they_are_asked_for";
        // Everything that it waits for has an end, so that it has one too.
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(SYSTEM, &file)
            .output()
            .unwrap();
        _ = std::fs::remove_file(file);
        let said = String::from_utf8_lossy(&output.stdout);
        return assert!(output.status.success() && said.contains("1 passed"), "{said}");
    };
    let (system, other) = (Ca::new("system"), Ca::new("other"));
    std::fs::write(file, &system.pem).unwrap();
    let security = Security::Tls(Arc::new(UpstreamTls {
        hostname: "shop.internal".into(),
        trust: Trust::System,
        names: Vec::new(),
    }));
    let backend = Backend::answering("hello").await;
    for (ca, expected) in [(&system, 200), (&other, 502)] {
        let front = TlsFront::before(backend.address, &ca.issue(&["shop.internal"]), &["http/1.1"]).await;
        let port = free_port();
        let _running = Running::serving(plan(port, &front, security.clone())).await;
        assert_eq!(get(here(port), "a.test", "/").await.status, expected);
    }
    assert_eq!(backend.count(), 1);
}
