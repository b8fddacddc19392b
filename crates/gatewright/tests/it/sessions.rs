//! Session persistence, from YAML to answers: clients keep their endpoint by a cookie or a header, as long as it lasts.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use crate::{
    process::{wait_for, wait_long_for},
    served::Served,
    web::{Echoes, Response},
    yaml::{route_with, service, service_of},
};

/// Four endpoints, of which each says its name.
const SEATS: [&str; 4] = ["north", "east", "south", "west"];

/// A route of everything to some Services, with session persistence.
fn route(name: &str, path: &str, services: &[&str], session: &str) -> String {
    let backends: Vec<_> = services
        .iter()
        .map(|name| format!("    - {{ name: {name}, port: 80 }}\n"))
        .collect();
    let backends = backends.concat();
    let rule = format!(
        "  - matches:\n    - path: {{ type: PathPrefix, value: {path} }}\n    sessionPersistence: {session}\n    backendRefs:\n{backends}"
    );
    route_with("HTTPRoute", name, &rule)
}

/// Serves a Service `seats` with all endpoints.
fn serve(session: &str) -> (Served, Echoes) {
    let echoes = Echoes::start("http", &SEATS);
    let served = Served::start(&(service_of("seats", echoes.ports()) + &route("kept", "/", &["seats"], session)));
    (served, echoes)
}

/// Name and value of the cookie that a response sets.
fn cookie(response: &Response) -> String {
    let set = response
        .header("set-cookie")
        .unwrap_or_else(|| panic!("no cookie in {response:?}"));
    set.split(';').next().unwrap().to_owned()
}

/// The attributes of the cookie that a response sets.
fn attributes(response: &Response) -> Vec<String> {
    let set = response.header("set-cookie").unwrap();
    set.split("; ").skip(1).map(str::to_owned).collect()
}

fn with_cookie(served: &Served, cookie: &str) -> Response {
    let response = served.get("/", &[("cookie", cookie)]);
    assert_eq!(response.status, 200, "{response:?}");
    response
}

#[test]
fn a_session_cookie_leads_back_to_its_endpoint_and_ends_with_the_browser() {
    let (served, _echoes) = serve("{ sessionName: seat, type: Cookie }");
    let mut seen = BTreeSet::new();
    for _ in 0..16 {
        let first = served.get("/", &[]);
        assert_eq!(attributes(&first), ["path=/", "httponly", "samesite=lax"]);
        let cookie = cookie(&first);
        assert!(cookie.starts_with("seat="), "{cookie}");
        seen.insert(first.service());
        for _ in 0..8 {
            let again = with_cookie(&served, &format!("theme=dark; {cookie}; lang=en"));
            assert_eq!((again.service(), again.header("set-cookie")), (first.service(), None));
        }
    }
    assert!(seen.len() > 1, "sessions begin at different endpoints: {seen:?}");
}

#[test]
fn a_permanent_cookie_says_how_long_it_lasts() {
    let (served, _echoes) =
        serve("{ sessionName: seat, absoluteTimeout: 1h, cookieConfig: { lifetimeType: Permanent } }");
    let first = served.get("/", &[]);
    assert_eq!(
        attributes(&first),
        ["path=/", "max-age=3600", "httponly", "samesite=lax"]
    );
    for _ in 0..8 {
        assert_eq!(with_cookie(&served, &cookie(&first)).service(), first.service());
    }
}

#[test]
fn a_header_carries_the_session_instead_and_its_name_has_no_case() {
    let (served, _echoes) = serve("{ sessionName: X-Seat, type: Header }");
    let first = served.get("/", &[]);
    assert_eq!(first.header("set-cookie"), None);
    let token = first.header("x-seat").unwrap();
    for name in ["X-Seat", "x-seat"].into_iter().cycle().take(16) {
        let again = served.get("/", &[(name, token)]);
        assert_eq!((again.status, again.service()), (200, first.service()));
    }
}

#[test]
fn a_session_spans_the_backends_of_its_rule() {
    let echoes = Echoes::start("http", &SEATS);
    let services: String = SEATS
        .iter()
        .zip(echoes.ports())
        .map(|(name, port)| service(name, *port))
        .collect();
    let served = Served::start(&(services + &route("kept", "/", &SEATS, "{ sessionName: seat }")));
    let mut seen = BTreeSet::new();
    for _ in 0..16 {
        let first = served.get("/", &[]);
        seen.insert(first.service());
        for _ in 0..4 {
            assert_eq!(with_cookie(&served, &cookie(&first)).service(), first.service());
        }
    }
    assert_eq!(seen.len(), SEATS.len(), "weights choose for new sessions: {seen:?}");
}

#[test]
fn a_session_ends_at_its_absolute_timeout_however_much_it_is_used() {
    let (served, _echoes) = serve("{ sessionName: seat, absoluteTimeout: 2s }");
    let begun = Instant::now();
    let first = served.get("/", &[]);
    let cookie = cookie(&first);
    wait_long_for("a new session", || {
        let again = with_cookie(&served, &cookie);
        if again.header("set-cookie").is_some() {
            return Some(());
        }
        assert_eq!(again.service(), first.service());
        None
    });
    // Times are whole seconds, of which the first may have been nearly over.
    let passed = begun.elapsed();
    assert!(
        passed > Duration::from_secs(1) && passed < Duration::from_secs(10),
        "{passed:?}"
    );
}

#[test]
fn a_session_ends_when_it_is_idle_and_goes_on_while_it_is_used() {
    let (served, _echoes) = serve("{ sessionName: seat, idleTimeout: 2s }");
    let begun = Instant::now();
    let first = served.get("/", &[]);
    let unused = cookie(&first);
    let mut used = unused.clone();
    wait_long_for("another endpoint for the value that is not renewed", || {
        let renewed = with_cookie(&served, &used);
        assert_eq!(renewed.service(), first.service(), "the one in use");
        used = cookie(&renewed);
        (with_cookie(&served, &unused).service() != first.service()).then_some(())
    });
    assert!(begun.elapsed() > Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[test]
fn forged_values_begin_a_new_session_and_reach_nothing_else() {
    let outside = Echoes::start("http", &["outside"]);
    let echoes = Echoes::start("http", &SEATS);
    let [mine, others] = [&echoes.ports()[..2], &echoes.ports()[2..]];
    let session = "{ sessionName: seat, type: Cookie }";
    let objects = service_of("mine", mine)
        + &service_of("others", others)
        + &route("mine", "/", &["mine"], session)
        + &route("others", "/others", &["others"], session);
    let served = Served::start(&objects);
    let genuine = cookie(&served.get("/", &[]));
    let (name, value) = genuine.split_once('=').unwrap();
    let flipped = (0..value.len()).map(|place| {
        let other = if &value[place..=place] == "0" { "1" } else { "0" };
        format!("{}{other}{}", &value[..place], &value[place + 1..])
    });
    let address = format!("127.0.0.1:{}", outside.ports()[0]);
    let hex = format!("7f000001{:04x}", outside.ports()[0]);
    let made_up = [
        String::new(),
        value[1..].to_owned(),
        value.repeat(2),
        address,
        hex,
        "0".repeat(64),
    ];
    for forged in flipped.chain(made_up) {
        let response = with_cookie(&served, &format!("{name}={forged}"));
        assert!(response.header("set-cookie").is_some(), "{forged} is believed");
        assert!(SEATS[..2].contains(&response.service().as_str()));
    }
    // A genuine value of another rule leads to none of its endpoints here.
    let foreign = cookie(&served.get("/others", &[]));
    for _ in 0..8 {
        let response = with_cookie(&served, &foreign);
        assert!(SEATS[..2].contains(&response.service().as_str()));
        assert!(response.header("set-cookie").is_some());
    }
    outside.saw_nothing_of("/ ");
}

#[test]
fn a_value_for_an_endpoint_that_is_gone_begins_a_new_session() {
    let (served, echoes) = serve("{ sessionName: seat }");
    let first = served.get("/", &[]);
    let old = cookie(&first);
    let gone = SEATS.iter().position(|seat| *seat == first.service()).unwrap();
    let mut ports = echoes.ports().to_vec();
    ports.remove(gone);
    let route = route("kept", "/", &["seats"], "{ sessionName: seat }");
    served.save(&(service_of("seats", &ports) + &route));
    let moved = wait_for("another endpoint", || {
        Some(with_cookie(&served, &old)).filter(|response| response.service() != first.service())
    });
    let new = cookie(&moved);
    assert_ne!(new, old);
    for _ in 0..8 {
        assert_eq!(with_cookie(&served, &new).service(), moved.service());
    }
    // When it comes back, those who moved stay where they are.
    served.save(&(service_of("seats", echoes.ports()) + &route));
    wait_for("the old endpoint", || {
        (with_cookie(&served, &old).service() == first.service()).then_some(())
    });
    assert_eq!(with_cookie(&served, &new).service(), moved.service());
}

#[test]
fn sessions_that_cannot_be_kept_are_refused_with_the_field() {
    let (served, _echoes) = serve("{ sessionName: seat, idleTimeout: 0s }");
    let condition = served.until_condition("HTTPRoute", "kept", "Accepted", "False");
    let message = condition["message"].as_str().unwrap();
    assert!(
        message.contains("spec.rules[0].sessionPersistence.idleTimeout"),
        "{message}"
    );
}
