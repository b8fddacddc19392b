//! Tokens: genuine ones are read, all others are not.

use std::{net::SocketAddr, time::Duration};

use gatewright_ir::{Carrier, ClusterId, Session, SessionKey};

use super::CompiledSession;
use crate::matching::RequestView;

struct Cookies(Vec<u8>, &'static str);

impl RequestView for Cookies {
    fn host(&self) -> &'static str {
        ""
    }

    fn method(&self) -> &'static str {
        "GET"
    }

    fn path(&self) -> &'static str {
        "/"
    }

    fn query(&self) -> Option<&str> {
        None
    }

    fn header_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        (name == self.1).then_some(self.0.as_slice()).into_iter()
    }
}

fn session(carrier: Carrier, absolute: Option<u64>, idle: Option<u64>, key: u8) -> CompiledSession {
    CompiledSession::compile(&Session {
        carrier,
        name: "seat".into(),
        absolute_timeout: absolute.map(Duration::from_secs),
        idle_timeout: idle.map(Duration::from_secs),
        key: SessionKey::new([key; 32]),
    })
    .unwrap()
}

fn address() -> SocketAddr {
    "10.1.2.3:8080".parse().unwrap()
}

fn issued(session: &CompiledSession, created: u32, now: u32) -> String {
    let tag = session.tag(&ClusterId::new("c"), address());
    let changes = session.changes(tag, created, now, true, true).unwrap();
    let (_, value) = changes.additions().next().unwrap();
    value.to_str().unwrap().to_owned()
}

fn cookie(session: &CompiledSession, created: u32, now: u32) -> String {
    issued(session, created, now).split(';').next().unwrap().to_owned()
}

fn cookies(text: &str) -> Cookies {
    Cookies(text.as_bytes().to_vec(), "cookie")
}

#[test]
fn a_token_comes_back_and_shows_no_address() {
    let session = session(Carrier::SessionCookie, None, None, 1);
    let cookie = cookie(&session, 1000, 1000);
    let request = cookies(&format!("a=b; {cookie} ; c=d"));
    let token = session.read(&request, 2000).unwrap();
    assert_eq!(token.tag, session.tag(&ClusterId::new("c"), address()));
    assert_eq!(token.created, 1000);
    assert_ne!(token.tag, session.tag(&ClusterId::new("d"), address()));
    assert_ne!(
        token.tag,
        session.tag(&ClusterId::new("c"), "10.1.2.3:8081".parse().unwrap())
    );
    assert!(!cookie.contains("10.1.2.3") && !cookie.contains("0a010203"), "{cookie}");
}

#[test]
fn a_token_of_another_key_or_with_any_other_digit_is_none() {
    let ours = session(Carrier::SessionCookie, None, None, 1);
    let cookie = cookie(&ours, 1000, 1000);
    assert_eq!(
        session(Carrier::SessionCookie, None, None, 2).read(&cookies(&cookie), 1000),
        None
    );
    for place in "seat=".len()..cookie.len() {
        let mut forged = cookie.clone().into_bytes();
        forged[place] = if forged[place] == b'0' { b'1' } else { b'0' };
        assert_eq!(ours.read(&Cookies(forged, "cookie"), 1000), None, "{place}");
    }
    for text in ["seat=", "seat", "seat=zz", "", "seat=é"] {
        assert_eq!(ours.read(&cookies(text), 1000), None, "{text}");
    }
}

#[test]
fn sessions_end_after_their_time_whichever_comes_first() {
    let session = session(Carrier::SessionCookie, Some(100), Some(10), 1);
    let at = |created, used, now| session.read(&cookies(&cookie(&session, created, used)), now).is_some();
    assert!(at(1000, 1000, 1010));
    assert!(!at(1000, 1000, 1011));
    assert!(at(1000, 1095, 1100));
    assert!(!at(1000, 1095, 1101));
    // A clock a little behind is no reason to lose a session; one far ahead is no clock.
    assert!(at(1000, 1000, 990));
    assert!(!at(1000, 1000, 600));
}

#[test]
fn cookies_say_how_long_they_live_and_headers_are_plain() {
    let permanent = session(Carrier::PermanentCookie, Some(3600), None, 1);
    let issued_permanent = issued(&permanent, 1000, 1600);
    assert!(
        issued_permanent.ends_with("; Path=/; Max-Age=3000; HttpOnly; SameSite=Lax; Secure"),
        "{issued_permanent}"
    );
    let header = session(Carrier::Header, None, None, 1);
    let value = issued(&header, 1000, 1000);
    assert_eq!(value.len(), 64);
    assert!(header.read(&Cookies(value.into_bytes(), "seat"), 1001).is_some());
}
