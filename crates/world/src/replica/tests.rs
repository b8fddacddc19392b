use proptest::prelude::*;

use super::*;

fn any_fact() -> impl Strategy<Value = ListenerFact> {
    let address = || {
        prop_oneof![
            any::<[u8; 4]>().prop_map(IpAddr::from),
            any::<[u8; 16]>().prop_map(IpAddr::from)
        ]
    };
    let socket = move || (address(), any::<u16>()).prop_map(|(address, port)| SocketAddr::new(address, port));
    let failure = prop_oneof![
        Just(ListenFailure::InUse),
        Just(ListenFailure::NotAvailable),
        Just(ListenFailure::Denied),
        ".{0,40}".prop_map(ListenFailure::Other),
    ];
    let state = prop_oneof![
        proptest::collection::vec(socket(), 0..3).prop_map(ListenerState::Listening),
        (socket(), failure).prop_map(|(address, failure)| ListenerState::Failed { address, failure }),
    ];
    (any::<i64>(), state).prop_map(|(generation, state)| ListenerFact { generation, state })
}

fn any_replica() -> impl Strategy<Value = Replica> {
    let facts = proptest::collection::btree_map(".{0,30}".prop_map(Origin::new), any_fact(), 0..8);
    let addresses = proptest::collection::vec(any::<[u8; 4]>().prop_map(IpAddr::from), 0..3);
    let node = proptest::option::of(".{0,10}".prop_map(Text::from));
    (addresses, node, any::<bool>(), facts).prop_map(|(addresses, node, is_leaving, facts)| Replica {
        addresses,
        node,
        is_leaving,
        facts,
    })
}

proptest! {
    #[test]
    fn what_a_replica_publishes_is_what_the_others_read(replica in any_replica()) {
        let Encoded { text, left_out } = replica.encode();
        prop_assert_eq!(left_out, 0);
        prop_assert_eq!(Replica::decode(&text).unwrap(), replica);
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = Replica::decode(&text);
    }
}

#[test]
fn a_replica_is_published_in_few_words() {
    let listening = ListenerFact {
        generation: 3,
        state: ListenerState::Listening(vec!["0.0.0.0:20000".parse().unwrap()]),
    };
    let replica = Replica {
        addresses: vec!["10.244.0.10".parse().unwrap()],
        node: Some("one".into()),
        is_leaving: false,
        facts: [(Origin::new("Gateway/infra/front/http"), listening)].into(),
    };
    assert_eq!(
        replica.encode().text,
        r#"{"addresses":["10.244.0.10"],"node":"one","listeners":{"Gateway/infra/front/http":{"g":3,"on":["0.0.0.0:20000"]}}}"#
    );
}

#[test]
fn a_text_never_exceeds_its_bound_and_says_what_found_no_room() {
    let fact = |state| ListenerFact { generation: 1, state };
    let address: SocketAddr = "0.0.0.0:20000".parse().unwrap();
    let mut replica = Replica::default();
    for index in 0..4000 {
        let state = if index % 2 == 0 {
            ListenerState::Listening(vec![address])
        } else {
            let failure = ListenFailure::InUse;
            ListenerState::Failed { address, failure }
        };
        let name = format!("Gateway/{}/{}/{index}", "n".repeat(30), "g".repeat(30));
        replica.facts.insert(Origin::new(name), fact(state));
    }
    let Encoded { text, left_out } = replica.encode();
    assert!(
        text.len() <= Replica::LONGEST && text.len() > Replica::LONGEST - 200,
        "{}",
        text.len()
    );
    let read = Replica::decode(&text).unwrap();
    assert_eq!(read.facts.len() + left_out, 4000);
    let open = |replica: &Replica| {
        let facts = replica.facts.values();
        facts
            .filter(|fact| matches!(fact.state, ListenerState::Listening(_)))
            .count()
    };
    assert!(
        open(&read) > read.facts.len() - open(&read),
        "those that listen come first"
    );
    assert!(matches!(
        Replica::decode(&" ".repeat(Replica::LONGEST + 1)),
        Err(ReplicaError::TooLong(_))
    ));
}
