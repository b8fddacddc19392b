//! External authorisation, from YAML to answers: somebody else decides over HTTP or gRPC, and nothing passes where nobody can.

use http::{Response, StatusCode};

use crate::{
    calls::fields,
    peers::{Asked, Peer},
    process::free_port,
    served::Served,
    web::Echoes,
    yaml::{route_with, service, service_of},
};

/// An echo behind an authoriser.
struct Guarded {
    served: Served,
    echoes: Echoes,
}

impl Guarded {
    /// The authoriser listens on this port, and these are the other fields of the filter.
    fn start(port: u16, filter: &str) -> Self {
        Self::start_with(port, &route(filter))
    }

    fn start_with(port: u16, route: &str) -> Self {
        let echoes = Echoes::start("http", &["echo"]);
        let services = service("echo", echoes.ports()[0]) + &service("guard", port);
        let served = Served::start(&(services + route));
        Self { served, echoes }
    }
}

fn route(filter: &str) -> String {
    let rule = format!(
        "  - filters:
    - type: ExternalAuth
      externalAuth:
        backendRef: {{ name: guard, port: 80 }}
{filter}    backendRefs:
    - name: echo
      port: 80
"
    );
    route_with("HTTPRoute", "guarded", &rule)
}

const OVER_HTTP: &str = "        protocol: HTTP\n        http: {}\n";
const OVER_GRPC: &str = "        protocol: GRPC\n        grpc: {}\n";

const WORD: (&str, &str) = ("authorization", "Bearer word");

/// Lets those pass who say the word, and says who they are.
fn guard(asked: &Asked) -> Response<String> {
    if asked.header("authorization") == Some(WORD.1) {
        let granted = Response::builder().header("x-user", "ann").header("x-secret", "1");
        return granted.body(String::new()).unwrap();
    }
    let refused = Response::builder().status(StatusCode::UNAUTHORIZED);
    refused
        .header("www-authenticate", "Bearer")
        .body("who are you?".to_owned())
        .unwrap()
}

#[test]
fn an_authoriser_over_http_lets_requests_pass_with_what_it_says_of_them() {
    let authoriser = Peer::http(guard);
    let guarded = Guarded::start(
        authoriser.port,
        "        protocol: HTTP
        http:
          path: /check
          allowedHeaders: [x-sent]
          allowedResponseHeaders: [x-user]
",
    );
    let headers = [WORD, ("x-sent", "1"), ("x-kept", "1"), ("x-user", "root")];
    let response = guarded.served.send("POST /cart?id=7", &headers, "body");
    assert_eq!(response.status, 200);
    assert_eq!(
        response.echoed_header("x-user"),
        ["ann"],
        "what a client claims is replaced"
    );
    assert_eq!(response.echoed_header("x-secret"), [""; 0], "not allowed");
    assert_eq!(response.echoed_header("x-kept"), ["1"]);
    let [asked] = &authoriser.asked()[..] else {
        panic!("{:?}", authoriser.asked())
    };
    assert_eq!(
        (asked.head.method.as_str(), asked.head.uri.to_string().as_str()),
        ("POST", "/check/cart?id=7")
    );
    assert_eq!(asked.header("host"), Some("a.test"));
    assert_eq!((asked.header("x-sent"), asked.header("x-kept")), (Some("1"), None));
    assert_eq!(asked.body, b"", "bodies are forwarded only where it says so");
}

#[test]
fn a_refusal_over_http_is_the_answer_and_the_backend_hears_nothing() {
    let authoriser = Peer::http(guard);
    let guarded = Guarded::start(authoriser.port, OVER_HTTP);
    let response = guarded.served.get("/secret", &[]);
    assert_eq!((response.status, response.body.as_str()), (401, "who are you?"));
    assert_eq!(response.header("www-authenticate"), Some("bearer"));
    assert_eq!(guarded.served.get("/open", &[WORD]).status, 200);
    guarded.echoes.saw_nothing_of("/secret");
}

#[test]
fn bodies_are_shown_to_the_authoriser_up_to_their_limit() {
    let authoriser = Peer::http(guard);
    let guarded = Guarded::start(
        authoriser.port,
        &format!("{OVER_HTTP}        forwardBody: {{ maxSize: 10 }}\n"),
    );
    let send = |path: &str, body: &str| guarded.served.send(&format!("POST {path}"), &[WORD], body).status;
    assert_eq!(send("/small", "0123456789"), 200);
    assert_eq!(send("/large", "0123456789a"), 413);
    guarded.echoes.saw_nothing_of("/large");
    let shown: Vec<_> = authoriser.asked().into_iter().map(|asked| asked.body).collect();
    assert_eq!(shown, [b"0123456789"]);
}

#[test]
fn where_no_authoriser_answers_nothing_passes() {
    let authoriser = Peer::http(guard);
    let guarded = Guarded::start(authoriser.port, OVER_HTTP);
    assert_eq!(guarded.served.get("/before", &[WORD]).status, 200);
    drop(authoriser);
    assert_eq!(guarded.served.get("/after", &[WORD]).status, 403);
    for protocol in [OVER_HTTP, OVER_GRPC] {
        let guarded = Guarded::start(free_port(), protocol);
        assert_eq!(guarded.served.get("/never", &[WORD]).status, 403, "{protocol}");
        guarded.echoes.saw_nothing_of("/never");
    }
    guarded.echoes.saw_nothing_of("/after");
}

#[test]
fn an_authoriser_that_errs_or_cannot_be_referred_to_lets_nothing_pass() {
    let broken = Peer::http(|_| Response::builder().status(500).body(String::new()).unwrap());
    let guarded = Guarded::start(broken.port, OVER_HTTP);
    assert_eq!(guarded.served.get("/", &[WORD]).status, 403);

    let willing = Peer::http(guard);
    let filter = OVER_HTTP;
    let missing = route(filter).replace("name: guard,", "name: nobody,");
    let foreign = route(filter).replace("name: guard,", "name: guard, namespace: elsewhere,");
    for (route, reason) in [(missing, "BackendNotFound"), (foreign, "RefNotPermitted")] {
        let guarded = Guarded::start_with(willing.port, &route);
        let condition = guarded
            .served
            .until_condition("HTTPRoute", "guarded", "ResolvedRefs", "False");
        assert_eq!(condition["reason"], reason);
        assert_eq!(guarded.served.get("/never", &[WORD]).status, 403, "{reason}");
        guarded.echoes.saw_nothing_of("/never");
    }
    // A Service without endpoints.
    let echoes = Echoes::start("http", &["echo"]);
    let services = service("echo", echoes.ports()[0]) + &service_of("guard", &[]);
    let served = Served::start(&(services + &route(filter)));
    assert_eq!(served.get("/", &[WORD]).status, 403);
    assert_eq!(willing.asked().len(), 0);
}

/// A field of a protobuf message that is text or another message.
fn field(number: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

fn option(name: &str, value: &str) -> Vec<u8> {
    field(1, [field(1, name), field(2, value)].concat())
}

/// The first field with each of these numbers, one inside the other.
fn inside<'m>(message: &'m [u8], path: &[u64]) -> &'m [u8] {
    path.iter().fold(message, |message, number| {
        fields(message, *number).next().unwrap_or_default()
    })
}

/// `attributes.request.http` of a question.
fn question(asked: &Asked) -> &[u8] {
    inside(&asked.body[5..], &[1, 4, 2])
}

/// The headers of the request that is asked about.
fn headers(asked: &Asked) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pair = |pair| (text(inside(pair, &[1])), text(inside(pair, &[2])));
    fields(question(asked), 3).map(pair).collect()
}

/// The same guard in Envoy's protocol, which takes a header away as well.
fn grpc_guard(asked: &Asked) -> Vec<u8> {
    let (name, value) = WORD;
    if headers(asked).contains(&(name.to_owned(), value.to_owned())) {
        let granted = [
            field(2, option("x-user", "ann")),
            field(5, "x-gone"),
            field(6, option("x-seen", "1")),
        ];
        return [field(1, []), field(3, granted.concat())].concat();
    }
    // PERMISSION_DENIED, with 401 for the client.
    let denied = [
        field(1, [0x08, 0x91, 0x03]),
        field(2, option("x-why", "no word")),
        field(3, "go away"),
    ];
    [field(1, [0x08, 0x07]), field(2, denied.concat())].concat()
}

#[test]
fn an_authoriser_over_grpc_allows_and_denies() {
    let authoriser = Peer::grpc(grpc_guard);
    let guarded = Guarded::start(
        authoriser.port,
        &format!("{OVER_GRPC}        forwardBody: {{ maxSize: 10 }}\n"),
    );
    let headers_sent = [WORD, ("x-gone", "1"), ("x-user", "root")];
    let response = guarded.served.send("POST /cart?id=7", &headers_sent, "body");
    assert_eq!((response.status, response.header("x-seen")), (200, Some("1")));
    assert_eq!(response.echoed_header("x-user"), ["ann"]);
    assert_eq!(response.echoed_header("x-gone"), [""; 0]);
    let asked = &authoriser.asked()[0];
    assert_eq!(asked.head.uri.path(), "/envoy.service.auth.v3.Authorization/Check");
    let http = question(asked);
    assert_eq!(inside(http, &[2]), b"POST");
    assert_eq!(inside(http, &[4]), b"/cart?id=7");
    assert_eq!(inside(http, &[5]), b"a.test");
    assert_eq!([inside(http, &[11]), inside(http, &[12])].concat(), b"body");
    assert!(
        headers(asked).contains(&("x-gone".to_owned(), "1".to_owned())),
        "all headers are shown"
    );

    let response = guarded.served.get("/secret", &[]);
    assert_eq!((response.status, response.body.as_str()), (401, "go away"));
    assert_eq!(response.header("x-why"), Some("no word"));
    assert_eq!(guarded.served.send("POST /large", &[WORD], "0123456789a").status, 413);
    guarded.echoes.saw_nothing_of("/secret");
    guarded.echoes.saw_nothing_of("/large");
    assert_eq!(authoriser.asked().len(), 2);
}

#[test]
fn an_authoriser_over_grpc_sees_only_the_headers_that_are_allowed() {
    let authoriser = Peer::grpc(grpc_guard);
    let guarded = Guarded::start(
        authoriser.port,
        "        protocol: GRPC\n        grpc: { allowedHeaders: [authorization, x-sent] }\n",
    );
    let sent = [WORD, ("x-sent", "1"), ("x-private", "1")];
    assert_eq!(guarded.served.send("POST /", &sent, "body").status, 200);
    let asked = &authoriser.asked()[0];
    let names: Vec<String> = headers(asked).into_iter().map(|(name, _)| name).collect();
    assert!(
        names.contains(&"x-sent".to_owned()) && !names.contains(&"x-private".to_owned()),
        "{names:?}"
    );
    assert_eq!(
        [inside(question(asked), &[11]), inside(question(asked), &[12])].concat(),
        b""
    );
}
