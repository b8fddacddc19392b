//! Filters that stand on one backendRef of several concern the requests of that one alone.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use crate::{
    process::{text, whole},
    served::Served,
    web::{Backends, Response},
    yaml::{FOLDER, folder, gateway, route_with, service},
};

/// A route of `/shop` to blue with filters, and to green without.
fn route(filters: &str) -> String {
    let rules = format!(
        "  - matches:
    - path: {{ type: PathPrefix, value: /shop }}
    backendRefs:
    - name: blue
      port: 80
      filters:
{filters}    - name: green
      port: 80
"
    );
    route_with("HTTPRoute", "shared", &rules)
}

/// Serves the route, and asks until both backends had their share. Returns an answer of each kind of status and backend.
fn answers(filters: &str, path: &str) -> BTreeMap<(u16, String), Response> {
    let backends = Backends::start();
    let services = service("blue", backends.blue) + &service("green", backends.green);
    let served = Served::start(&(services + &route(filters)));
    let mut found = BTreeMap::new();
    for _ in 0..64 {
        let response = served.get(path, &[]);
        found.insert((response.status, response.service()), response);
    }
    found
}

fn only<'a>(answers: &'a BTreeMap<(u16, String), Response>, status: u16, service: &str) -> &'a Response {
    answers
        .get(&(status, service.to_owned()))
        .unwrap_or_else(|| panic!("no {status} of {service:?} in {answers:?}"))
}

#[test]
fn a_rewrite_of_a_backend_changes_what_that_backend_sees() {
    let rewrite = "      - type: URLRewrite
        urlRewrite:
          hostname: blue.internal
          path: { type: ReplacePrefixMatch, replacePrefixMatch: /store/eu }
";
    let answers = answers(rewrite, "/shop/cart?id=7");
    assert_eq!(answers.len(), 2, "{answers:?}");
    let seen = |service| {
        let echoed: Value = only(&answers, 200, service).echoed();
        (text(&echoed, "path").to_owned(), text(&echoed, "host").to_owned())
    };
    assert_eq!(
        seen("blue"),
        ("/store/eu/cart?id=7".to_owned(), "blue.internal".to_owned())
    );
    assert_eq!(seen("green"), ("/shop/cart?id=7".to_owned(), "a.test".to_owned()));
}

#[test]
fn a_rewrite_of_a_backend_can_replace_the_whole_path_and_goes_with_header_changes() {
    let filters = "      - type: URLRewrite
        urlRewrite: { path: { type: ReplaceFullPath, replaceFullPath: /all } }
      - type: RequestHeaderModifier
        requestHeaderModifier: { set: [{ name: x-colour, value: blue }] }
      - type: ResponseHeaderModifier
        responseHeaderModifier: { set: [{ name: x-from, value: blue }] }
";
    let answers = answers(filters, "/shop/cart");
    let (blue, green) = (only(&answers, 200, "blue"), only(&answers, 200, "green"));
    assert_eq!(text(&blue.echoed(), "path"), "/all");
    assert_eq!(blue.echoed_header("x-colour"), ["blue"]);
    assert_eq!(blue.header("x-from"), Some("blue"));
    assert_eq!(text(&green.echoed(), "path"), "/shop/cart");
    assert_eq!(green.echoed_header("x-colour"), [""; 0]);
    assert_eq!(green.header("x-from"), None);
}

#[test]
fn a_redirect_of_a_backend_answers_its_share_of_the_requests() {
    let redirect = "      - type: RequestRedirect
        requestRedirect:
          scheme: https
          hostname: blue.example.com
          port: 8443
          path: { type: ReplacePrefixMatch, replacePrefixMatch: /store }
          statusCode: 307
";
    let answers = answers(redirect, "/shop/cart?id=7");
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!(
        only(&answers, 307, "").header("location"),
        Some("https://blue.example.com:8443/store/cart?id=7")
    );
    only(&answers, 200, "green");
}

#[test]
fn a_backend_with_a_redirect_and_a_rewrite_is_refused_by_name() {
    let both = "      - type: RequestRedirect
        requestRedirect: { hostname: blue.example.com }
      - type: URLRewrite
        urlRewrite: { hostname: blue.internal }
";
    let services = service("blue", 9081) + &service("green", 9082);
    let parent = folder(&[("all.yaml", &(gateway(8080) + &services + &route(both)))]);
    insta::assert_snapshot!(whole(Path::new(parent.path()), &["check", FOLDER]));
}
