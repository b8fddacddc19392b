use std::collections::BTreeMap;

use super::*;

fn pair(name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

fn secret(entries: &[(&str, &str)]) -> Secret {
    let string_data: BTreeMap<String, String> = entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Secret::reduce(&api::Secret {
        string_data: Some(string_data),
        ..api::Secret::default()
    })
}

#[test]
fn a_matching_pair_is_read_with_its_names() {
    let (chain, key) = pair("*.example.com");
    let material = secret(&[("tls.crt", &chain), ("tls.key", &key)]).tls.unwrap();
    assert_eq!(material.names, [HostPattern::Wildcard("example.com".into())]);
    assert_eq!(material.chain.len(), 1);
    assert_eq!(format!("{:?}", material.key), "PrivateKey(redacted)");
}

#[test]
fn every_way_to_be_broken_has_its_own_problem() {
    let (chain, key) = pair("a.com");
    let (_, other) = pair("b.com");
    let table = [
        (vec![("tls.key", key.as_str())], TlsProblem::Missing("tls.crt")),
        (vec![("tls.crt", chain.as_str())], TlsProblem::Missing("tls.key")),
        (
            vec![("tls.crt", ""), ("tls.key", key.as_str())],
            TlsProblem::Missing("tls.crt"),
        ),
        (
            vec![("tls.crt", "junk"), ("tls.key", key.as_str())],
            TlsProblem::Unreadable("tls.crt"),
        ),
        (
            vec![("tls.crt", chain.as_str()), ("tls.key", "junk")],
            TlsProblem::Unreadable("tls.key"),
        ),
        (
            vec![("tls.crt", chain.as_str()), ("tls.key", other.as_str())],
            TlsProblem::Mismatch,
        ),
    ];
    for (entries, expected) in table {
        assert_eq!(secret(&entries).tls, Err(expected));
    }
    let long = chain.repeat(17);
    assert_eq!(
        secret(&[("tls.crt", &long), ("tls.key", &key)]).tls,
        Err(TlsProblem::TooLong)
    );
}

#[test]
fn an_ocsp_response_comes_along_if_there_is_one() {
    let (chain, key) = pair("a.com");
    let staple = |entries: &[(&str, &str)]| {
        let mut all = vec![("tls.crt", chain.as_str()), ("tls.key", key.as_str())];
        all.extend_from_slice(entries);
        secret(&all).tls.unwrap().staple.clone()
    };
    assert_eq!(staple(&[]), None);
    assert_eq!(staple(&[("tls.ocsp-staple", "")]), None);
    assert_eq!(
        staple(&[("tls.ocsp-staple", "response")]).as_deref(),
        Some(&b"response"[..])
    );
}

#[test]
fn a_certificate_says_when_it_is_valid() {
    let mut made = rcgen::CertificateParams::new(vec!["a.com".to_owned()]).unwrap();
    made.not_before = rcgen::date_time_ymd(2026, 1, 1);
    made.not_after = rcgen::date_time_ymd(2026, 1, 2);
    let key = rcgen::KeyPair::generate().unwrap();
    let chain = made.self_signed(&key).unwrap().pem();
    let material = secret(&[("tls.crt", &chain), ("tls.key", &key.serialize_pem())])
        .tls
        .unwrap();
    assert_eq!(material.validity, (1_767_225_600, 1_767_312_000));
}

#[test]
fn names_that_are_no_hostnames_are_passed_over_and_spoil_nothing() {
    let mut made = rcgen::CertificateParams::new(vec!["*.org".to_owned()]).unwrap();
    let odd = [
        rcgen::SanType::URI("*".try_into().unwrap()),
        rcgen::SanType::URI("spiffe://a.com/b".try_into().unwrap()),
        rcgen::SanType::IpAddress("10.0.0.1".parse().unwrap()),
    ];
    made.subject_alt_names.extend(odd);
    let key = rcgen::KeyPair::generate().unwrap();
    let chain = made.self_signed(&key).unwrap().pem();
    let material = secret(&[("tls.crt", &chain), ("tls.key", &key.serialize_pem())])
        .tls
        .unwrap();
    assert_eq!(material.names, [HostPattern::Wildcard("org".into())]);
}

#[test]
fn a_certificate_without_any_names_can_be_presented() {
    let made = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let chain = made.self_signed(&key).unwrap().pem();
    let material = secret(&[("tls.crt", &chain), ("tls.key", &key.serialize_pem())])
        .tls
        .unwrap();
    assert!(material.names.is_empty());
}
