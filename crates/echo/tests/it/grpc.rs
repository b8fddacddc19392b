//! The gRPC mode, with messages read field by field.

use bytes::Bytes;
use gatewright_echo::{EchoMode, EchoSettings};
use http::{Request, StatusCode};

use crate::support::{Certificates, Client, Reply, full, start};

const SERVICE: &str = "gateway_api_conformance.echo_basic.grpcecho.GrpcEcho";

/// The fields of a message: number and bytes. The echo uses no other wire type.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        assert_eq!(tag & 7, 2, "every field of the echo has a length");
        let length = usize::try_from(varint(&mut bytes)).unwrap();
        fields.push((tag >> 3, bytes[..length].to_vec()));
        bytes = &bytes[length..];
    }
    fields
}

fn text(fields: &[(u64, Vec<u8>)], number: u64) -> String {
    let found = fields.iter().find(|(field, _)| *field == number);
    String::from_utf8(found.map(|(_, bytes)| bytes.clone()).unwrap_or_default()).unwrap()
}

fn message(inner: &[(u64, Vec<u8>)], number: u64) -> Vec<(u64, Vec<u8>)> {
    fields(&inner.iter().find(|(field, _)| *field == number).unwrap().1)
}

async fn call(client: &mut Client, method: &str) -> Reply {
    let request = Request::post(format!("http://shop.example/{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("x-colour", "blue")
        .body(full(Bytes::from_static(&[0, 0, 0, 0, 0])))
        .unwrap();
    client.send(request).await.unwrap()
}

fn assertions(reply: &Reply) -> Vec<(u64, Vec<u8>)> {
    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(reply.headers["content-type"], "application/grpc");
    assert_eq!(reply.trailers["grpc-status"], "0");
    assert_eq!(reply.body[0], 0, "not compressed");
    assert_eq!(
        u32::from_be_bytes(reply.body[1..5].try_into().unwrap()),
        u32::try_from(reply.body.len() - 5).unwrap()
    );
    let response = fields(&reply.body[5..]);
    assert_eq!(message(&response, 2), [], "the request, which has no fields");
    message(&response, 1)
}

#[tokio::test]
async fn echo_and_echo_two_tell_what_came_in() {
    let server = start(EchoSettings::local(EchoMode::Grpc).with_service("ledger")).await;
    let mut client = Client::http2(server.addresses.plain).await;
    for method in ["Echo", "EchoTwo"] {
        let assertions = assertions(&call(&mut client, &format!("{SERVICE}/{method}")).await);
        assert_eq!(text(&assertions, 1), format!("/{SERVICE}/{method}"));
        assert_eq!(text(&assertions, 3), "shop.example");
        let context = message(&assertions, 4);
        assert_eq!(
            (text(&context, 3), text(&context, 4)),
            ("ledger".to_owned(), "ledger-0".to_owned())
        );
        let headers: Vec<_> = assertions
            .iter()
            .filter(|(number, _)| *number == 2)
            .map(|(_, bytes)| fields(bytes))
            .map(|header| (text(&header, 1), text(&header, 2)))
            .collect();
        assert!(
            headers.contains(&("x-colour".to_owned(), "blue".to_owned())),
            "{headers:?}"
        );
        assert!(
            headers.contains(&(":authority".to_owned(), "shop.example".to_owned())),
            "{headers:?}"
        );
        assert!(!assertions.iter().any(|(number, _)| *number == 5), "no TLS here");
    }
}

#[tokio::test]
async fn other_methods_and_services_are_unimplemented() {
    let server = start(EchoSettings::local(EchoMode::Grpc)).await;
    let mut client = Client::http2(server.addresses.plain).await;
    for method in [
        format!("{SERVICE}/EchoThree"),
        "other.Service/Echo".to_owned(),
        "nothing".to_owned(),
    ] {
        let reply = call(&mut client, &method).await;
        assert_eq!(reply.status, StatusCode::OK);
        assert_eq!(reply.headers["grpc-status"], "12", "{method}");
        assert!(reply.body.is_empty());
    }
}

#[tokio::test]
async fn a_request_that_is_no_grpc_is_refused() {
    let server = start(EchoSettings::local(EchoMode::Grpc)).await;
    let reply = Client::http2(server.addresses.plain).await.get("/").await;
    assert_eq!(reply.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn over_tls_the_handshake_is_told() {
    let certificates = Certificates::new();
    let server = start(EchoSettings::local(EchoMode::Grpc).with_tls(0, certificates.verifying_clients())).await;
    let stream = certificates
        .connect(server.addresses.tls.unwrap(), &["h2"], true)
        .await
        .unwrap();
    let mut client = Client::http2_over(stream).await;
    let tls = message(&assertions(&call(&mut client, &format!("{SERVICE}/Echo")).await), 5);
    assert_eq!(text(&tls, 1), "TLSv1.3");
    assert_eq!(text(&tls, 2), "h2");
    assert_eq!(text(&tls, 3), "shop.example");
    assert!(text(&tls, 4).starts_with("TLS_AES_"));
    assert!(text(&tls, 5).starts_with("-----BEGIN CERTIFICATE-----\n"));
}
