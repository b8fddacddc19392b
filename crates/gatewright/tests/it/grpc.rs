//! GRPCRoutes from files: calls, streams, deadlines, and errors that a client of gRPC understands.

use std::time::{Duration, Instant};

use futures::{SinkExt, channel::mpsc};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};

use crate::{
    calls::{self, ECHO, Reply, block_on, call, call_with},
    peers::{Peer, framed},
    process::free_port,
    served::Served,
    web::{Backends, Echoes},
    yaml::{route_with, service, service_of},
};

/// Rules of a GRPCRoute: which calls go to which Service.
fn rules(rules: &[(&str, &str)]) -> String {
    let rule = |(matches, service): &(&str, &str)| {
        format!("  - matches:\n    - {matches}\n    backendRefs:\n    - {{ name: {service}, port: 80 }}\n")
    };
    rules.iter().map(rule).collect()
}

/// Serves two echoes for gRPC behind a route.
fn serve(route: &str) -> (Served, Echoes) {
    let echoes = Echoes::start("grpc", &["blue", "green"]);
    let [blue, green] = *echoes.ports() else {
        panic!("two names have two ports");
    };
    let services = service("blue", blue) + &service("green", green);
    (Served::start(&(services + route)), echoes)
}

/// Demands that the gateway itself failed a call, with this status.
fn failed(reply: &Reply, status: &str) {
    assert!(reply.is_trailers_only(), "{reply:?}");
    assert_eq!(reply.status(), status, "{reply:?}");
    assert!(!reply.headers["grpc-message"].is_empty(), "{reply:?}");
}

#[test]
fn calls_go_by_service_method_and_header() {
    let route = rules(&[
        (&format!("method: {{ service: {ECHO}, method: Echo }}"), "blue"),
        (
            "method: { type: RegularExpression, service: .*GrpcEcho, method: Echo(Two|Three) }",
            "green",
        ),
        ("headers: [{ name: x-colour, value: green }]", "green"),
        ("method: { method: Odd }", "blue"),
    ]);
    let (served, _echoes) = serve(&route_with("GRPCRoute", "calls", &route));
    let reply = |method: &str, headers: &[(&str, &str)]| call(served.traffic, &format!("/{method}"), headers);
    let two = format!("{ECHO}/EchoTwo");
    for (method, service) in [(format!("{ECHO}/Echo"), "blue"), (two, "green")] {
        let reply = reply(&method, &[]);
        assert_eq!((reply.status(), reply.service().as_str()), ("0", service), "{reply:?}");
        assert!(reply.trailers.is_some(), "a status comes after the message");
    }
    // The echo knows no such methods, and says so itself.
    for (method, headers) in [("x.Y/Odd", &[][..]), ("x.Y/Other", &[("x-colour", "green")])] {
        let reply = reply(method, headers);
        assert_eq!(reply.status(), "12");
        assert_eq!(reply.headers["grpc-message"], "this service is not implemented");
    }
    // And nothing matches these.
    for method in [
        "x.Y/Other".to_owned(),
        format!("{ECHO}/EchoFour"),
        format!("{ECHO}/echo"),
    ] {
        let reply = reply(&method, &[]);
        failed(&reply, "12");
        assert_ne!(reply.headers["grpc-message"], "this service is not implemented");
        assert_ne!(reply.headers["grpc-message"], "this method is not implemented");
    }
}

#[test]
fn header_filters_change_calls_and_answers() {
    let rule = "  - filters:
    - type: RequestHeaderModifier
      requestHeaderModifier:
        set: [{ name: x-set, value: ours }]
        add: [{ name: x-added, value: more }]
        remove: [x-gone]
    - type: ResponseHeaderModifier
      responseHeaderModifier: { set: [{ name: x-from, value: gateway }] }
    backendRefs:
    - name: blue
      port: 80
      filters:
      - type: RequestHeaderModifier
        requestHeaderModifier: { set: [{ name: x-backend, value: blue }] }
";
    let (served, _echoes) = serve(&route_with("GRPCRoute", "calls", rule));
    let headers = [
        ("x-set", "theirs"),
        ("x-added", "one"),
        ("x-gone", "1"),
        ("x-kept", "1"),
    ];
    let reply = call(served.traffic, &format!("/{ECHO}/Echo"), &headers);
    assert_eq!(reply.status(), "0", "{reply:?}");
    assert_eq!(reply.echoed_header("x-set"), ["ours"]);
    assert_eq!(reply.echoed_header("x-added").join(","), "one,more");
    assert_eq!(reply.echoed_header("x-gone"), [""; 0]);
    assert_eq!(reply.echoed_header("x-kept"), ["1"]);
    assert_eq!(reply.echoed_header("x-backend"), ["blue"]);
    assert_eq!(reply.headers["x-from"], "gateway");
}

/// A route of all calls to one Service.
fn all_to(service: &str) -> String {
    let rule = format!("  - backendRefs:\n    - name: {service}\n      port: 80\n");
    route_with("GRPCRoute", "calls", &rule)
}

#[test]
fn both_sides_stream_at_once() {
    let peer = Peer::streaming();
    let served = Served::start(&(service("peer", peer.port) + &all_to("peer")));
    block_on(async {
        let (mut messages, body) = mpsc::channel::<Result<Frame<Bytes>, std::convert::Infallible>>(1);
        let request = calls::request("/x.Y/Chat", &[], StreamBody::new(body));
        let mut answer = calls::send(served.traffic, request).await.into_body();
        for round in 0..100 {
            let message = framed(format!("message {round}").as_bytes());
            messages.send(Ok(Frame::data(message.clone().into()))).await.unwrap();
            // Each comes back before the next is sent.
            let mut back = Vec::new();
            while back.len() < message.len() {
                back.extend(answer.frame().await.unwrap().unwrap().into_data().unwrap());
            }
            assert_eq!(back, message);
        }
        messages.close_channel();
        let mut trailers = None;
        while let Some(frame) = answer.frame().await {
            trailers = frame.unwrap().into_trailers().ok();
        }
        assert_eq!(trailers.unwrap()["grpc-status"], "0");
    });
}

#[test]
fn many_messages_one_way_arrive_whole() {
    let peer = Peer::streaming();
    let served = Served::start(&(service("peer", peer.port) + &all_to("peer")));
    let message = framed(&vec![b'x'; 100_000]);
    let count = 50;
    let received = block_on(async {
        let (mut messages, body) = mpsc::channel::<Result<Frame<Bytes>, std::convert::Infallible>>(1);
        let (sent, message) = (message.clone(), Bytes::from(message.clone()));
        let sender = tokio::spawn(async move {
            for _ in 0..count {
                messages.send(Ok(Frame::data(message.clone()))).await.unwrap();
            }
            sent.len()
        });
        let answer = calls::send(served.traffic, calls::request("/x.Y/Send", &[], StreamBody::new(body))).await;
        let received = answer.into_body().collect().await.unwrap();
        sender.await.unwrap();
        received
    });
    assert_eq!(received.trailers().unwrap()["grpc-status"], "0");
    assert!(
        received.to_bytes() == message.repeat(count),
        "what came back is what was sent"
    );
}

#[test]
fn a_deadline_of_the_client_is_kept_and_passed_on() {
    let silent = Peer::silent();
    let served = Served::start(&(service("peer", silent.port) + &all_to("peer")));
    let begun = Instant::now();
    failed(&call(served.traffic, "/x.Y/Wait", &[("grpc-timeout", "300m")]), "4");
    let passed = begun.elapsed();
    assert!(
        passed >= Duration::from_millis(300) && passed < Duration::from_secs(10),
        "{passed:?}"
    );
    let asked = silent.asked();
    assert_eq!(asked[0].header("grpc-timeout"), Some("300m"));
    assert_eq!(asked[0].header("te"), Some("trailers"));
}

#[test]
fn errors_of_the_gateway_are_statuses_of_the_call() {
    let peer = Peer::streaming();
    let matching = |method: &str| format!("method: {{ service: x.Y, method: {method} }}");
    let route = rules(&[
        (&matching("Fine"), "peer"),
        (&matching("Empty"), "empty"),
        (&matching("Dead"), "dead"),
        (&matching("Missing"), "missing"),
    ]);
    let services = service("peer", peer.port) + &service_of("empty", &[]) + &service("dead", free_port());
    let served = Served::start(&(services + &route_with("GRPCRoute", "calls", &route)));
    let reply = |method: &str| call(served.traffic, &format!("/x.Y/{method}"), &[]);
    assert_eq!(reply("Fine").status(), "0");
    failed(&reply("Unknown"), "12");
    failed(&reply("Empty"), "14");
    failed(&reply("Dead"), "14");
    failed(&reply("Missing"), "2");
    let condition = served.until_condition("GRPCRoute", "calls", "ResolvedRefs", "False");
    assert_eq!(condition["reason"], "BackendNotFound");
}

#[test]
fn requests_and_calls_share_a_hostname() {
    let backends = Backends::start();
    let hostname = |route: String| route.replace("  parentRefs:", "  hostnames: [a.test]\n  parentRefs:");
    let calls = rules(&[(&format!("method: {{ service: {ECHO} }}"), "green")]);
    let web = "  - backendRefs:\n    - name: web\n      port: 80\n";
    let routes = hostname(route_with("GRPCRoute", "calls", &calls)) + &hostname(route_with("HTTPRoute", "web", web));
    let (served, _echoes) = serve(&(service("web", backends.blue) + &routes));
    assert_eq!(served.get("/", &[]).service(), "blue", "the web's backend");
    let reply = call_with(served.traffic, &format!("/{ECHO}/Echo"), &[], b"");
    assert_eq!((reply.status(), reply.service().as_str()), ("0", "green"));
    for (kind, name) in [("GRPCRoute", "calls"), ("HTTPRoute", "web")] {
        served.until_condition(kind, name, "Accepted", "True");
    }
}

#[test]
fn calls_keep_their_endpoint_by_a_header() {
    let echoes = Echoes::start("grpc", &["north", "east", "south"]);
    let rule = "  - sessionPersistence: { sessionName: x-seat, type: Header }
    backendRefs:
    - name: seats
      port: 80
";
    let served = Served::start(&(service_of("seats", echoes.ports()) + &route_with("GRPCRoute", "calls", rule)));
    let method = format!("/{ECHO}/Echo");
    let first = call(served.traffic, &method, &[]);
    assert_eq!(first.status(), "0");
    let token = first.headers["x-seat"].to_str().unwrap();
    for _ in 0..12 {
        assert_eq!(
            call(served.traffic, &method, &[("x-seat", token)]).service(),
            first.service()
        );
    }
}
