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
