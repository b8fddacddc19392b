use futures::FutureExt;
use gatewright_world::Replica;

use super::Outbox;

fn leaving() -> Replica {
    Replica {
        is_leaving: true,
        ..Replica::default()
    }
}

#[tokio::test]
async fn the_newest_is_told_and_once() {
    let outbox = Outbox::default();
    outbox.put("one", Some(Replica::default()));
    outbox.put("two", Some(Replica::default()));
    outbox.put("one", Some(leaving()));
    let expected = vec![
        ("one".to_owned(), Some(leaving())),
        ("two".to_owned(), Some(Replica::default())),
    ];
    assert_eq!(outbox.next().await, Some(expected));
    assert_eq!(outbox.next().now_or_never(), None);
    outbox.put("one", None);
    assert_eq!(outbox.next().await, Some(vec![("one".to_owned(), None)]));
}

#[tokio::test]
async fn one_that_nobody_knew_is_not_told_to_be_gone() {
    let outbox = Outbox::default();
    outbox.put("one", Some(Replica::default()));
    outbox.put("one", None);
    assert_eq!(outbox.next().now_or_never(), None);
    outbox.close();
    assert_eq!(outbox.next().await, None);
}
