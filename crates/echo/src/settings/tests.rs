//! The environment variables of the contract.

use std::collections::HashMap;

use super::*;

fn settings(variables: &[(&'static str, &str)]) -> Result<EchoSettings, EchoError> {
    let variables: HashMap<_, _> = variables
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    EchoSettings::from_lookup(|name| variables.get(name).cloned())
}

#[test]
fn an_empty_environment_gives_http_on_the_default_ports_of_the_contract() {
    let settings = settings(&[]).unwrap();
    assert_eq!(settings.mode, EchoMode::Http);
    assert_eq!(
        (settings.port, settings.h2c_port, settings.tls_port),
        (3000, Some(3001), 8443)
    );
    assert!(settings.tls.is_none());
    assert_eq!(settings.identity, Identity::default());
    assert!(settings.bind_address.is_unspecified());
}

#[test]
fn each_mode_has_its_own_variables_and_ports() {
    assert_eq!(
        settings(&[("GRPC_ECHO_SERVER", "1"), ("HTTP_PORT", "50")])
            .unwrap()
            .port,
        50
    );
    let tcp = settings(&[("TCP_ECHO_SERVER", "1"), ("TCP_PORT", "51"), ("TLS_PORT", "52")]).unwrap();
    assert_eq!((tcp.mode, tcp.port, tcp.tls_port), (EchoMode::Tcp, 51, 52));
    let udp = settings(&[("UDP_ECHO_SERVER", "1")]).unwrap();
    assert_eq!((udp.mode, udp.port), (EchoMode::Udp, 8080));
}

#[test]
fn an_empty_variable_counts_as_absent() {
    let settings = settings(&[("TCP_ECHO_SERVER", ""), ("HTTP_PORT", "")]).unwrap();
    assert_eq!((settings.mode, settings.port), (EchoMode::Http, 3000));
}

#[test]
fn the_identity_is_read_from_the_environment() {
    let settings = settings(&[
        ("NAMESPACE", "shop"),
        ("POD_NAME", "cart-5c-x"),
        ("SERVICE_NAME", "cart"),
        ("INGRESS_NAME", "front"),
        ("BIND_ADDRESS", "10.244.0.7"),
    ])
    .unwrap();
    assert_eq!(
        settings.identity,
        Identity {
            namespace: "shop".into(),
            ingress: "front".into(),
            service: "cart".into(),
            pod: "cart-5c-x".into()
        }
    );
    assert_eq!(settings.bind_address.to_string(), "10.244.0.7");
}

#[test]
fn tls_files_are_read_under_the_spelling_of_each_mode() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = directory.path().join("crt");
    let key = directory.path().join("key");
    std::fs::write(&certificate, "certificate").unwrap();
    std::fs::write(&key, "key").unwrap();
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());

    let http = settings(&[("TLS_SERVER_CERT", certificate), ("TLS_SERVER_PRIVKEY", key)]).unwrap();
    assert_eq!(http.tls.unwrap().private_key, b"key");
    let other_spelling = settings(&[("TLS_SERVER_CERT", certificate), ("TLS_SERVER_PRIV_KEY", key)]).unwrap();
    assert!(other_spelling.tls.is_none());
    let tcp = settings(&[
        ("TCP_ECHO_SERVER", "1"),
        ("TLS_SERVER_CERT", certificate),
        ("TLS_SERVER_PRIV_KEY", key),
    ])
    .unwrap();
    assert_eq!(tcp.tls.unwrap().certificate_chain, b"certificate");
}

#[test]
fn a_bad_port_and_a_missing_file_are_named_in_the_error() {
    assert_eq!(
        settings(&[("HTTP_PORT", "many")]).unwrap_err().to_string(),
        "HTTP_PORT=many is not a port number"
    );
    let error = settings(&[
        ("TLS_SERVER_CERT", "/nowhere/crt"),
        ("TLS_SERVER_PRIVKEY", "/nowhere/key"),
    ])
    .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot read /nowhere/crt (named by TLS_SERVER_CERT): "),
        "{error}"
    );
}

#[test]
fn the_private_key_is_not_in_the_debug_output() {
    let material = TlsMaterial {
        certificate_chain: b"certificate".to_vec(),
        private_key: b"secret".to_vec(),
        client_authorities: None,
    };
    let text = format!("{:?}", EchoSettings::local(EchoMode::Http).with_tls(0, material));
    assert!(
        !text.contains("secret") && !text.contains(&format!("{:?}", b"secret")),
        "{text}"
    );
}
