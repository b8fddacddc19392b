//! Resolving against a name server that the test itself plays, on loopback.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use hickory_resolver::{
    config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts},
    proto::{
        op::{Message, ResponseCode},
        rr::{RData, Record, RecordType},
    },
};
use parking_lot::Mutex;
use tokio::{net::UdpSocket, runtime::Handle, time::timeout};

use super::{Lookup, Names, Pace, Resolver, is_local};

/// What the name server says at the moment.
#[derive(Clone, Debug)]
enum Says {
    Addresses(Vec<Ipv4Addr>),
    Code(ResponseCode),
    /// Not a word.
    Nothing,
}

#[derive(Clone)]
struct NameServer {
    says: Arc<Mutex<Says>>,
    asked: Arc<Mutex<Vec<String>>>,
    address: SocketAddr,
}

impl NameServer {
    /// Answers every question with what it was last told to say, in records that expire at once, or in a minute when the
    /// name begins with `steady`.
    async fn start(says: Says) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            says: Arc::new(Mutex::new(says)),
            asked: Arc::default(),
            address: socket.local_addr().unwrap(),
        };
        let shared = server.clone();
        tokio::spawn(async move {
            let mut buffer = [0; 4096];
            loop {
                let (count, peer) = socket.recv_from(&mut buffer).await.unwrap();
                let question = Message::from_vec(&buffer[..count]).unwrap();
                shared.asked.lock().push(question.queries[0].name().to_string());
                if let Some(answer) = shared.answer(&question) {
                    socket.send_to(&answer.to_vec().unwrap(), peer).await.unwrap();
                }
            }
        });
        server
    }

    fn answer(&self, question: &Message) -> Option<Message> {
        let mut answer = Message::response(question.metadata.id, question.metadata.op_code);
        answer.add_query(question.queries[0].clone());
        match &*self.says.lock() {
            Says::Addresses(addresses) => {
                let query = &question.queries[0];
                let lifetime = if query.name().to_string().starts_with("steady") {
                    60
                } else {
                    0
                };
                if query.query_type() == RecordType::A {
                    for address in addresses {
                        answer.add_answer(Record::from_rdata(
                            query.name().clone(),
                            lifetime,
                            RData::A((*address).into()),
                        ));
                    }
                }
            }
            Says::Code(code) => answer.metadata.response_code = *code,
            Says::Nothing => return None,
        }
        Some(answer)
    }

    fn say(&self, says: Says) {
        *self.says.lock() = says;
    }

    fn asked(&self) -> usize {
        self.asked.lock().len()
    }

    fn asked_for(&self, name: &str) -> usize {
        self.asked.lock().iter().filter(|asked| *asked == name).count()
    }

    fn resolver(&self) -> Resolver {
        let mut connection = ConnectionConfig::udp();
        connection.port = self.address.port();
        let server = NameServerConfig::new(self.address.ip(), true, vec![connection]);
        let mut options = ResolverOpts::default();
        options.timeout = Duration::from_millis(100);
        options.attempts = 0;
        let lookup = Lookup::with(ResolverConfig::from_name_servers(vec![server]), options);
        let pace = Pace {
            shortest: Duration::from_millis(10),
            longest: Duration::from_secs(5),
            first_retry: Duration::from_millis(10),
            longest_retry: Duration::from_millis(50),
            patience: 5,
        };
        Resolver::with(Handle::current(), lookup, pace)
    }
}

fn v4(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, last)
}

fn sockets(port: u16, addresses: &[Ipv4Addr]) -> Vec<SocketAddr> {
    addresses
        .iter()
        .map(|address| SocketAddr::new(IpAddr::V4(*address), port))
        .collect()
}

/// Waits until a condition holds. Time passes only while the runtime waits for the name server.
async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let polled = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), polled)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

async fn first_answer(names: &Names) -> Vec<SocketAddr> {
    timeout(Duration::from_secs(10), names.answered()).await.unwrap();
    names.addresses().to_vec()
}

#[tokio::test]
async fn a_name_is_resolved_again_when_its_records_expire() {
    let server = NameServer::start(Says::Addresses(vec![v4(2), v4(1), v4(2)])).await;
    let names = server.resolver().watch("Backend.Example.", 80, false);
    assert_eq!(first_answer(&names).await, sockets(80, &[v4(1), v4(2)]));
    server.say(Says::Addresses(vec![v4(3)]));
    until("the new address", || **names.addresses() == sockets(80, &[v4(3)])).await;
}

#[tokio::test]
async fn a_name_whose_records_are_valid_is_not_asked_for_again() {
    let server = NameServer::start(Says::Addresses(vec![v4(1)])).await;
    let resolver = server.resolver();
    let steady = resolver.watch("steady.example", 80, false);
    let restless = resolver.watch("restless.example", 80, false);
    first_answer(&steady).await;
    first_answer(&restless).await;
    until("more questions", || server.asked_for("restless.example.") >= 5).await;
    assert_eq!(server.asked_for("steady.example."), 1);
}

#[tokio::test]
async fn the_last_good_answer_is_kept_while_name_servers_fail() {
    let server = NameServer::start(Says::Addresses(vec![v4(1)])).await;
    let names = server.resolver().watch("backend.example", 80, false);
    assert_eq!(first_answer(&names).await, sockets(80, &[v4(1)]));
    for failure in [
        Says::Code(ResponseCode::ServFail),
        Says::Code(ResponseCode::Refused),
        Says::Nothing,
    ] {
        server.say(failure.clone());
        let before = server.asked();
        until("more questions", || server.asked() >= before + 4).await;
        assert_eq!(**names.addresses(), sockets(80, &[v4(1)]), "{failure:?}");
    }
    server.say(Says::Addresses(vec![v4(2)]));
    until("recovery", || **names.addresses() == sockets(80, &[v4(2)])).await;
}

#[tokio::test]
async fn a_name_that_is_gone_for_good_loses_its_addresses() {
    let server = NameServer::start(Says::Addresses(vec![v4(1)])).await;
    let names = server.resolver().watch("backend.example", 80, false);
    assert_eq!(first_answer(&names).await.len(), 1);
    server.say(Says::Code(ResponseCode::NXDomain));
    until("no addresses", || names.addresses().is_empty()).await;
}

#[tokio::test]
async fn an_unchanged_answer_is_not_published_again() {
    let server = NameServer::start(Says::Addresses(vec![v4(1), v4(2)])).await;
    let names = server.resolver().watch("backend.example", 80, false);
    first_answer(&names).await;
    let published = Arc::clone(&names.addresses());
    server.say(Says::Addresses(vec![v4(2), v4(1)]));
    let before = server.asked();
    until("more questions", || server.asked() >= before + 3).await;
    assert!(Arc::ptr_eq(&published, &names.addresses()));
}

#[tokio::test]
async fn those_who_watch_one_name_share_its_task_and_the_last_one_ends_it() {
    let server = NameServer::start(Says::Addresses(vec![v4(1)])).await;
    let resolver = server.resolver();
    let one = resolver.watch("backend.example", 80, false);
    let two = resolver.watch("BACKEND.example.", 80, false);
    let other = resolver.watch("backend.example", 81, false);
    assert!(Arc::ptr_eq(&one.0, &two.0) && !Arc::ptr_eq(&one.0, &other.0));
    first_answer(&one).await;
    let task = one.0.task.get().unwrap().clone();
    drop(one);
    assert!(!task.is_finished());
    drop(two);
    until("the end of the task", || task.is_finished()).await;
    let again = resolver.watch("backend.example", 80, false);
    assert_eq!(first_answer(&again).await, sockets(80, &[v4(1)]));
}

#[tokio::test]
async fn addresses_of_this_host_are_left_out_unless_allowed() {
    let loopback = Ipv4Addr::LOCALHOST;
    let server = NameServer::start(Says::Addresses(vec![
        loopback,
        v4(1),
        Ipv4Addr::new(169, 254, 169, 254),
    ]))
    .await;
    let resolver = server.resolver();
    let strict = resolver.watch("backend.example", 80, false);
    assert_eq!(first_answer(&strict).await, sockets(80, &[v4(1)]));
    let allowed = resolver.watch("backend.example", 80, true);
    assert_eq!(first_answer(&allowed).await.len(), 3);
    // Nothing is left: no stale address may stand in for what the name now says.
    server.say(Says::Addresses(vec![loopback]));
    until("no addresses", || strict.addresses().is_empty()).await;
}

#[tokio::test]
async fn addresses_and_localhost_need_no_name_server() {
    let server = NameServer::start(Says::Nothing).await;
    let resolver = server.resolver();
    for (name, allow_local, expected) in [
        ("192.0.2.7", false, Some("192.0.2.7:80")),
        ("[2001:db8::7]", false, Some("[2001:db8::7]:80")),
        ("::ffff:192.0.2.7", false, Some("192.0.2.7:80")),
        ("127.0.0.1", false, None),
        ("::ffff:127.0.0.1", false, None),
        ("127.0.0.1", true, Some("127.0.0.1:80")),
        ("localhost", true, Some("127.0.0.1:80")),
        ("localhost", false, None),
    ] {
        let names = resolver.watch(name, 80, allow_local);
        let expected: Vec<SocketAddr> = expected.iter().map(|address| address.parse().unwrap()).collect();
        assert_eq!(first_answer(&names).await, expected, "{name}");
    }
    assert_eq!(server.asked(), 0);
}

#[test]
fn every_form_of_a_local_address_is_recognised() {
    let local = [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "0.1.2.3",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "febf::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::a9fe:a9fe",
    ];
    for address in local {
        assert!(is_local(address.parse().unwrap()), "{address}");
    }
    for address in [
        "10.0.0.1",
        "192.168.0.1",
        "8.8.8.8",
        "2001:db8::1",
        "fd00::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ] {
        assert!(!is_local(address.parse().unwrap()), "{address}");
    }
}
