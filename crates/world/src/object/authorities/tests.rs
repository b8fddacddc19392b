use gatewright_api::{Kind, Object};
use serde_json::{Value, json};

use super::*;

fn reduce(data: &Value) -> Authorities {
    let mut value = json!({"metadata": {"namespace": "a", "name": "ca"}});
    value.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
    match Object::from_value(Kind::ConfigMap, value).unwrap() {
        Object::ConfigMap(map) => Authorities::reduce(&map),
        other => panic!("{other:?} is no ConfigMap"),
    }
}

fn pem(name: &str) -> String {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    made.cert.pem()
}

fn problem(pem: &str) -> AuthorityProblem {
    reduce(&json!({"data": {"ca.crt": pem}})).certificates.unwrap_err()
}

#[test]
fn all_certificates_of_a_bundle_are_read_and_nothing_else_of_the_map() {
    let bundle = format!("# two of them\n{}\n{}", pem("a.com"), pem("b.com"));
    let read = reduce(&json!({"data": {"ca.crt": bundle, "key.crt": "junk"}}));
    assert_eq!(read.certificates.map(|certificates| certificates.len()), Ok(2));
}

#[test]
fn a_bundle_may_also_be_binary_and_text_goes_before_it() {
    // `ca.crt: junk` in base64.
    let binary = json!({"binaryData": {"ca.crt": "anVuaw=="}});
    assert_eq!(reduce(&binary).certificates, Err(AuthorityProblem::Unreadable));
    let both = json!({"data": {"ca.crt": pem("a.com")}, "binaryData": {"ca.crt": "anVuaw=="}});
    assert!(reduce(&both).certificates.is_ok());
}

#[test]
fn a_map_without_authorities_says_so() {
    for data in [
        json!({}),
        json!({"data": {}}),
        json!({"data": {"ca.crt": ""}}),
        json!({"data": {"tls.crt": "x"}}),
    ] {
        assert_eq!(reduce(&data).certificates, Err(AuthorityProblem::Missing), "{data}");
    }
    assert_eq!(problem("junk"), AuthorityProblem::Unreadable);
    let not_a_certificate = "-----BEGIN CERTIFICATE-----\nanVuaw==\n-----END CERTIFICATE-----\n";
    assert_eq!(problem(not_a_certificate), AuthorityProblem::Unreadable);
    let one_of_two = format!("{}{not_a_certificate}", pem("a.com"));
    assert_eq!(
        problem(&one_of_two),
        AuthorityProblem::Unreadable,
        "half a bundle is none"
    );
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    assert_eq!(problem(&key), AuthorityProblem::Unreadable);
}

#[test]
fn a_bundle_cannot_fill_the_memory_of_everybody() {
    let one = pem("a.com");
    let most = reduce(&json!({"data": {"ca.crt": one.repeat(MOST)}}));
    assert_eq!(most.certificates.map(|certificates| certificates.len()), Ok(MOST));
    assert_eq!(problem(&one.repeat(MOST + 1)), AuthorityProblem::TooMany);
}

#[test]
fn every_problem_says_what_is_wrong_with_the_map() {
    let told = |problem: AuthorityProblem| problem.to_string();
    assert_eq!(told(AuthorityProblem::Missing), "it has no ca.crt");
    assert_eq!(
        told(AuthorityProblem::Unreadable),
        "its ca.crt is not a list of certificates in PEM"
    );
    assert_eq!(
        told(AuthorityProblem::TooMany),
        "its ca.crt has more than 512 certificates"
    );
}
