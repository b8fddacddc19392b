//! TLS from YAML to answers: passed on and ended on one port, clients that must show a certificate, backends that must, and a
//! listener that another namespace has added.

use std::net::SocketAddr;

use gatewright_echo::{EchoMode, EchoServer, EchoSettings, TlsMaterial};
use tokio::runtime::Runtime;

use crate::{
    process::{Process, free_port, wait_for},
    secure::{Authority, Identity, indented},
    web::{get, request},
    yaml::{FOLDER, folder, save},
};

/// Backends that speak TLS.
struct Backends {
    runtime: Runtime,
    lines: EchoServer,
    web: EchoServer,
}

impl Backends {
    fn start(authority: &Authority) -> Self {
        let runtime = Runtime::new().unwrap();
        let material = |name: &str| {
            let Identity { certificate, key } = authority.sign(name);
            TlsMaterial {
                certificate_chain: certificate.pem().into_bytes(),
                private_key: key.serialize_pem().into_bytes(),
                client_authorities: Some(authority.certificate.pem().into_bytes()),
            }
        };
        let lines = EchoSettings::local(EchoMode::Tcp).with_tls(0, material("passed.test"));
        let web = EchoSettings::local(EchoMode::Http).with_tls(0, material("backend.test"));
        let (lines, web) = runtime.block_on(async { (EchoServer::start(lines).await, EchoServer::start(web).await) });
        Self {
            runtime,
            lines: lines.unwrap(),
            web: web.unwrap(),
        }
    }
}

struct Ports {
    tls: u16,
    https: u16,
    http: u16,
}

fn service(name: &str, address: SocketAddr, application: &str) -> String {
    let port = address.port();
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{ports: [{{port: 80{application}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{port: {port}}}]
endpoints: [{{addresses: [127.0.0.1]}}]
"
    )
}

fn objects(ports: &Ports, backends: &Backends, authority: &Authority) -> String {
    let Ports { tls, https, http } = ports;
    let mut text = format!(
        "apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: gatewright}}
spec: {{controllerName: gatewright.dev/gateway-controller}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: edge}}
spec:
  gatewayClassName: gatewright
  allowedListeners: {{namespaces: {{from: All}}}}
  tls:
    frontend:
      default:
        validation: {{caCertificateRefs: [{{group: \"\", kind: ConfigMap, name: clients}}]}}
    backend: {{clientCertificateRef: {{name: gateway}}}}
  listeners:
  - {{name: passed, protocol: TLS, port: {tls}, hostname: passed.test, tls: {{mode: Passthrough}}}}
  - {{name: ended, protocol: TLS, port: {tls}, hostname: ended.test, tls: {{certificateRefs: [{{name: ended}}]}}}}
  - {{name: again, protocol: TLS, port: {tls}, hostname: again.test, tls: {{certificateRefs: [{{name: again}}]}}}}
  - {{name: https, protocol: HTTPS, port: {https}, hostname: web.test, tls: {{certificateRefs: [{{name: web}}]}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {{name: added, namespace: team}}
spec:
  parentRef: {{name: edge, namespace: default}}
  listeners: [{{name: http, protocol: HTTP, port: {http}, allowedRoutes: {{namespaces: {{from: All}}}}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {{name: passed}}
spec:
  parentRefs: [{{name: edge}}]
  hostnames: [passed.test]
  rules: [{{backendRefs: [{{name: lines-tls, port: 80}}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {{name: ended}}
spec:
  parentRefs: [{{name: edge}}]
  hostnames: [ended.test]
  rules: [{{backendRefs: [{{name: lines, port: 80}}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {{name: again}}
spec:
  parentRefs: [{{name: edge}}]
  hostnames: [again.test]
  rules: [{{backendRefs: [{{name: lines-tls, port: 80}}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: web}}
spec:
  parentRefs: [{{name: edge, sectionName: https}}, {{kind: ListenerSet, name: added, namespace: team}}]
  rules: [{{backendRefs: [{{name: web, port: 80}}]}}]
"
    );
    text += &service("lines", backends.lines.addresses.plain, "");
    text += &service("lines-tls", backends.lines.addresses.tls.unwrap(), "");
    text += &service("web", backends.web.addresses.tls.unwrap(), ", appProtocol: https");
    // What is passed on is TLS already; what was ended here is put into TLS again.
    text += "---\n";
    text += &policy("lines-tls", "passed.test");
    for name in ["ended", "again", "web", "gateway"] {
        text += &authority.sign(&format!("{name}.test")).secret("default", name);
    }
    text
}

fn authorities(name: &str, authority: &Authority) -> String {
    let certificates = indented(&authority.certificate.pem());
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n  ca.crt: |\n{certificates}")
}

fn policy(service: &str, hostname: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {{name: {service}}}
spec:
  targetRefs: [{{group: \"\", kind: Service, name: {service}}}]
  validation:
    hostname: {hostname}
    caCertificateRefs: [{{group: \"\", kind: ConfigMap, name: backends}}]
"
    )
}

#[test]
fn tls_is_passed_on_ended_asked_of_clients_and_spoken_to_backends() {
    let authority = Authority::new();
    let backends = Backends::start(&authority);
    let ports = Ports {
        tls: free_port(),
        https: free_port(),
        http: free_port(),
    };
    let parent = folder(&[
        ("objects.yaml", &objects(&ports, &backends, &authority)),
        ("clients.yaml", &authorities("clients", &authority)),
        ("backends.yaml", &authorities("backends", &authority)),
        ("policy.yaml", &policy("web", "backend.test")),
    ]);
    let _process = Process::serve(parent.path(), FOLDER);
    let stranger = authority.client(None);

    // One port, told apart by name: who ends TLS is seen by the backend.
    for (name, is_tls) in [("passed.test", "true"), ("ended.test", "false"), ("again.test", "true")] {
        let banner = "Gateway API Test TCP Server\n";
        let most = (banner.len() + is_tls.len()) as u64;
        let answer = stranger.ask(ports.tls, name, "IS_TLS\n", most);
        assert_eq!(answer, Some(format!("{banner}{is_tls}")), "{name}");
    }
    assert_eq!(stranger.ask(ports.tls, "other.test", "IS_TLS\n", 1), None);

    // A client that shows nothing is refused, one of another authority as well.
    let known = authority.client(Some(&authority.sign("client.test")));
    let other = authority.client(Some(&Authority::new().sign("client.test")));
    assert_eq!(known.get(ports.https, "web.test"), Some(200));
    assert_eq!(stranger.get(ports.https, "web.test"), None);
    assert_eq!(other.get(ports.https, "web.test"), None);

    // Through the listener that was added; the backend knows its own name and who asks.
    let http = SocketAddr::from(([127, 0, 0, 1], ports.http));
    let answer = request(http, "GET /", "any.test", "");
    let echoed = answer.echoed();
    assert_eq!(echoed["tls"]["serverName"], "backend.test", "{answer:?}");
    assert!(echoed["tls"]["peerCertificates"][0].is_string(), "{echoed}");

    // What the policy asks for and cannot be had is refused, and nothing is sent in clear text meanwhile.
    save(parent.path(), "policy.yaml", &policy("web", "other.test"));
    wait_for("another name is refused", || {
        (get(http, "/").status == 502).then_some(())
    });
    save(parent.path(), "policy.yaml", &policy("web", "backend.test"));
    wait_for("the right name is served", || {
        (get(http, "/").status == 200).then_some(())
    });
    save(parent.path(), "backends.yaml", &authorities("elsewhere", &authority));
    wait_for("without authorities nothing is sent", || {
        (get(http, "/").status == 500).then_some(())
    });
    save(
        parent.path(),
        "backends.yaml",
        &authorities("backends", &Authority::new()),
    );
    wait_for("another authority is refused", || {
        (get(http, "/").status == 502).then_some(())
    });
    save(parent.path(), "backends.yaml", &authorities("backends", &authority));
    wait_for("the right authority is served", || {
        (get(http, "/").status == 200).then_some(())
    });

    // Without authorities for clients the listener is closed, not open to everybody.
    save(parent.path(), "clients.yaml", &authorities("elsewhere-too", &authority));
    wait_for("nobody is let in", || {
        known.get(ports.https, "web.test").is_none().then_some(())
    });
    assert_eq!(stranger.get(ports.https, "web.test"), None);
    let Backends { runtime, lines, web } = backends;
    runtime.block_on(async {
        lines.stop().await;
        web.stop().await;
    });
}
