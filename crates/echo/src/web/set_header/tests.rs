//! Wishes as clients write them.

use super::*;

fn applied(wishes: &[&str]) -> (Vec<(String, String)>, Vec<String>) {
    let mut request = HeaderMap::new();
    for wish in wishes {
        request.append(STEERING, HeaderValue::from_str(wish).unwrap());
    }
    let mut response = HeaderMap::new();
    response.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let names = apply(&request, &mut response);
    let headers = response
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    (headers, names)
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn several_headers_are_set_and_their_case_is_reported() {
    let (headers, names) = applied(&["X-One: 1,x-TWO:2:2", " three : 3 "]);
    assert_eq!(
        headers,
        [
            pair("content-type", "application/json"),
            pair("x-one", "1"),
            pair("x-two", "2:2"),
            pair("three", "3")
        ]
    );
    assert_eq!(names, ["X-One", "x-TWO", "three"]);
}

#[test]
fn a_repeated_name_joins_its_values_and_the_first_replaces_ours() {
    let (headers, names) = applied(&["X-One:a,x-one:b", "content-type:text/odd"]);
    assert_eq!(headers, [pair("content-type", "text/odd"), pair("x-one", "a,b")]);
    assert_eq!(names, ["X-One", "content-type"]);
}

#[test]
fn empty_illegal_and_framing_names_are_passed_over() {
    let (headers, names) = applied(&["", ":v,,a b:1", "Content-Length:7,transfer-encoding:chunked"]);
    assert_eq!(headers, [pair("content-type", "application/json")]);
    assert!(names.is_empty());
}
