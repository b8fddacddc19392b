//! Listeners that ask clients who they are: whom they let in, and that nobody gets around them.

use std::{net::SocketAddr, sync::Arc};

use gatewright_ir::{Authority, Certificate, ClientValidation, Origin, PrivateKey};
use http::Request;
use rustls::{
    ClientConfig, HandshakeKind, SupportedProtocolVersion,
    version::{TLS12, TLS13},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{
    Backend, Client, Plan, Running,
    http2::Http2,
    pki::Ca,
    running::{free_port, here},
    soon,
    tls::connect,
    until,
};

const VERSIONS: [&[&SupportedProtocolVersion]; 2] = [&[&TLS13], &[&TLS12]];

/// Makes a request, and says how the handshake went and what came back. A client that is refused may hear of it only
/// after it has sent something.
async fn ask(address: SocketAddr, config: &Arc<ClientConfig>, name: &str) -> Result<(HandshakeKind, String), String> {
    let text = |error: std::io::Error| error.to_string();
    let mut stream = connect(address, config, name).await.map_err(text)?;
    let kind = stream.get_ref().1.handshake_kind().unwrap();
    soon("an answer", async {
        let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.map_err(text)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.map_err(text)?;
        let answer = String::from_utf8(answer).unwrap();
        Ok((kind, answer.lines().next().unwrap_or_default().to_owned()))
    })
    .await
}

const SERVED: &str = "HTTP/1.1 200 OK";

async fn is_served(address: SocketAddr, config: &Arc<ClientConfig>, name: &str) -> bool {
    match ask(address, config, name).await {
        Ok((_, line)) => {
            assert_eq!(line, SERVED);
            true
        }
        Err(_) => false,
    }
}

struct Rig {
    ca: Ca,
    clients: Ca,
    others: Ca,
    backend: Backend,
    certificate: Arc<Certificate>,
    port: u16,
}

impl Rig {
    async fn new() -> Self {
        let ca = Ca::new("ca");
        Self {
            certificate: ca.issue(&["a.test", "*.a.test"]),
            ca,
            clients: Ca::new("clients"),
            others: Ca::new("others"),
            backend: Backend::answering("hello").await,
            port: free_port(),
        }
    }

    fn plan(&self) -> Plan {
        Plan::new().cluster("backend", &[self.backend.address])
    }

    fn listener(&self, plan: Plan, name: &str, hostname: &str, clients: Option<&Arc<ClientValidation>>) -> Plan {
        let plan = plan
            .https(name, self.port, &[&self.certificate])
            .hostname(hostname)
            .all_to("backend");
        match clients {
            Some(clients) => plan.clients(clients),
            None => plan,
        }
    }

    /// A gateway with one listener for everything.
    fn one(&self, clients: Option<&Arc<ClientValidation>>) -> Plan {
        self.listener(self.plan(), "web", "", clients)
    }

    fn client(
        &self,
        shown: Option<&Arc<Certificate>>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Arc<ClientConfig> {
        self.ca.client(shown, versions, &["http/1.1"])
    }
}

#[tokio::test]
async fn where_a_certificate_is_required_only_its_holders_are_served() {
    let rig = Rig::new().await;
    let running = Running::serving(rig.one(Some(&rig.clients.required()))).await;
    let good = rig.clients.issue(&["client"]);
    for versions in VERSIONS {
        for (what, shown, expected) in [
            ("a good one", Some(&good), true),
            ("none", None, false),
            ("another authority's", Some(&rig.others.issue(&["client"])), false),
            (
                "one of the same name's",
                Some(&Ca::new("clients").issue(&["client"])),
                false,
            ),
            ("an old one", Some(&rig.clients.expired(&["client"])), false),
        ] {
            let served = is_served(here(rig.port), &rig.client(shown, versions), "a.test").await;
            assert_eq!(served, expected, "{what} {versions:?}");
        }
    }
    assert_eq!(rig.backend.count(), 2);
    until("refusals are counted", || {
        let failures = running.proxy.metrics().tls_failures;
        failures
            .iter()
            .any(|failure| failure.reason == "protocol" && failure.count == 8)
    })
    .await;
}

#[tokio::test]
async fn where_a_certificate_is_only_asked_for_everybody_is_served() {
    let rig = Rig::new().await;
    let _running = Running::serving(rig.one(Some(&rig.clients.optional()))).await;
    for versions in VERSIONS {
        for (what, shown) in [
            ("a good one", Some(&rig.clients.issue(&["client"]))),
            ("none", None),
            ("another authority's", Some(&rig.others.issue(&["client"]))),
            ("an old one", Some(&rig.clients.expired(&["client"]))),
        ] {
            assert!(
                is_served(here(rig.port), &rig.client(shown, versions), "a.test").await,
                "{what} {versions:?}"
            );
        }
    }
}

#[tokio::test]
async fn several_authorities_may_vouch_for_clients() {
    let rig = Rig::new().await;
    let both = Arc::new(ClientValidation {
        authorities: vec![Arc::clone(&rig.clients.authority), Arc::clone(&rig.others.authority)],
        is_optional: false,
    });
    let _running = Running::serving(rig.one(Some(&both))).await;
    for (ca, expected) in [(&rig.clients, true), (&rig.others, true), (&rig.ca, false)] {
        let client = rig.client(Some(&ca.issue(&["client"])), VERSIONS[0]);
        assert_eq!(is_served(here(rig.port), &client, "a.test").await, expected);
    }
}

#[tokio::test]
async fn authorities_that_are_none_let_nobody_in_and_disturb_no_other_listener() {
    let rig = Rig::new().await;
    let nobody = |certificates: Vec<Vec<u8>>| {
        Arc::new(ClientValidation {
            authorities: vec![Arc::new(Authority {
                origin: Origin::new("ConfigMap/broken"),
                certificates: certificates.into(),
            })],
            is_optional: false,
        })
    };
    let good = rig.client(Some(&rig.clients.issue(&["client"])), VERSIONS[0]);
    for validation in [nobody(Vec::new()), nobody(vec![b"not a certificate".to_vec()])] {
        let plan = rig.listener(rig.plan(), "strict", "a.test", Some(&validation));
        let plan = rig.listener(plan, "open", "*.a.test", None);
        let running = Running::serving(plan).await;
        assert!(!is_served(here(rig.port), &good, "a.test").await);
        assert!(is_served(here(rig.port), &good, "b.a.test").await);
        // Once they are put right, holders of their certificates are served.
        let plan = rig.listener(rig.plan(), "strict", "a.test", Some(&rig.clients.required()));
        running.apply([plan]).await;
        assert!(is_served(here(rig.port), &good, "a.test").await);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_session_does_not_outlive_the_terms_it_was_begun_on() {
    let rig = Rig::new().await;
    let (required, optional) = (rig.clients.required(), rig.clients.optional());
    let others = rig.others.required();
    let shown = rig.clients.issue(&["client"]);
    for versions in VERSIONS {
        for (what, before, after, shown) in [
            ("none, then required", None, Some(&required), None),
            ("asked for, then required", Some(&optional), Some(&required), None),
            ("required, then of others", Some(&required), Some(&others), Some(&shown)),
        ] {
            let running = Running::serving(rig.one(before)).await;
            let client = rig.client(shown, versions);
            let (kind, line) = ask(here(rig.port), &client, "a.test").await.unwrap();
            assert_eq!(
                (kind, line.as_str()),
                (HandshakeKind::Full, SERVED),
                "{what} {versions:?}"
            );
            // As long as nothing changes, sessions go on, with another certificate of the listener's own too.
            let (kind, line) = ask(here(rig.port), &client, "a.test").await.unwrap();
            assert_eq!(
                (kind, line.as_str()),
                (HandshakeKind::Resumed, SERVED),
                "{what} {versions:?}"
            );
            running.apply([rig.one(after)]).await;
            assert!(
                !is_served(here(rig.port), &client, "a.test").await,
                "{what} {versions:?}"
            );
            running.stop().await;
        }
    }
}

#[tokio::test]
async fn a_session_of_an_open_listener_does_not_open_one_that_wants_certificates() {
    let rig = Rig::new().await;
    for versions in VERSIONS {
        let open = rig.listener(rig.plan(), "open", "*.a.test", None);
        let running = Running::serving(open.clone()).await;
        let client = rig.client(None, versions);
        assert!(is_served(here(rig.port), &client, "secret.a.test").await);
        let (kind, _) = ask(here(rig.port), &client, "secret.a.test").await.unwrap();
        assert_eq!(kind, HandshakeKind::Resumed);
        // Now the name belongs to a listener of its own.
        let plan = rig.listener(open, "strict", "secret.a.test", Some(&rig.clients.required()));
        running.apply([plan]).await;
        assert!(
            !is_served(here(rig.port), &client, "secret.a.test").await,
            "{versions:?}"
        );
        assert!(is_served(here(rig.port), &client, "open.a.test").await);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_connection_to_an_open_listener_does_not_reach_the_host_of_a_strict_one() {
    let rig = Rig::new().await;
    let plan = rig.listener(rig.plan(), "open", "*.a.test", None);
    let plan = rig.listener(plan, "strict", "secret.a.test", Some(&rig.clients.required()));
    let _running = Running::serving(plan).await;
    let stream = connect(
        here(rig.port),
        &rig.ca.client(None, VERSIONS[0], &["h2"]),
        "open.a.test",
    )
    .await
    .unwrap();
    let mut client = Http2::on(stream).await;
    for (authority, expected) in [
        ("open.a.test", 200),
        ("secret.a.test", 421),
        ("SECRET.a.test", 421),
        ("secret.a.test:443", 421),
        ("other.a.test", 200),
    ] {
        let request = Request::get(format!("https://{authority}/")).body(&b""[..]).unwrap();
        assert_eq!(client.request(request).await.unwrap().status, expected, "{authority}");
    }
    assert_eq!(rig.backend.count(), 2);
}

#[tokio::test]
async fn resumed_sessions_survive_new_certificates_of_the_listener() {
    let mut rig = Rig::new().await;
    let required = rig.clients.required();
    let shown = rig.clients.issue(&["client"]);
    let running = Running::serving(rig.one(Some(&required))).await;
    let clients = VERSIONS.map(|versions| rig.client(Some(&shown), versions));
    for client in &clients {
        assert!(is_served(here(rig.port), client, "a.test").await);
    }
    rig.certificate = rig.ca.issue(&["a.test"]);
    // Equal terms from other objects are the same terms.
    running
        .apply([rig.one(Some(&Arc::new(ClientValidation::clone(&required))))])
        .await;
    for client in &clients {
        let (kind, line) = ask(here(rig.port), client, "a.test").await.unwrap();
        assert_eq!((kind, line.as_str()), (HandshakeKind::Resumed, SERVED));
    }
}

#[tokio::test]
async fn a_certificate_without_its_key_convinces_nobody() {
    let rig = Rig::new().await;
    // The chain of one, the key of another: the library refuses to make such a client, so the key is swapped behind it.
    let (stolen, own) = (rig.clients.issue(&["client"]), rig.clients.issue(&["client"]));
    let mixed = Arc::new(Certificate {
        key: PrivateKey::new(own.key.expose().to_vec()),
        ..Certificate::clone(&stolen)
    });
    for validation in [rig.clients.required(), rig.clients.optional()] {
        let running = Running::serving(rig.one(Some(&validation))).await;
        for versions in VERSIONS {
            let client = rig.ca.client_with_any_key(&mixed, versions);
            assert!(!is_served(here(rig.port), &client, "a.test").await);
        }
        running.stop().await;
    }
    assert_eq!(rig.backend.count(), 0);
}

#[tokio::test]
async fn an_open_connection_does_not_outlive_the_terms_it_was_made_on() {
    let rig = Rig::new().await;
    let (required, optional) = (rig.clients.required(), rig.clients.optional());
    let running = Running::serving(rig.one(Some(&optional))).await;
    let config = |protocol| rig.ca.client(None, VERSIONS[0], &[protocol]);
    let mut first = Client::on(connect(here(rig.port), &config("http/1.1"), "a.test").await.unwrap());
    let mut second = Http2::on(connect(here(rig.port), &config("h2"), "a.test").await.unwrap()).await;
    assert_eq!(first.get("a.test", "/").await.status, 200);
    assert_eq!(second.get("https://a.test/").await.status, 200);
    // Equal terms, and none at all, change nothing for those who are in.
    for plan in [
        rig.one(Some(&rig.clients.optional())),
        rig.one(None),
        rig.one(Some(&optional)),
    ] {
        running.apply([plan]).await;
        assert_eq!(first.get("a.test", "/").await.status, 200);
        assert_eq!(second.get("https://a.test/").await.status, 200);
    }
    running.apply([rig.one(Some(&required))]).await;
    let response = first.get("a.test", "/").await;
    assert_eq!((response.status, response.header("connection")), (421, Some("close")));
    assert_eq!(second.get("https://a.test/").await.status, 421);
    _ = soon("the connection ends", second.connection).await;
    assert_eq!(rig.backend.count(), 8);
}
