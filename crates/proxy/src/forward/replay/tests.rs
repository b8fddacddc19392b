//! A body that is read, begun anew and read again is the same body, and memory has an end.

use std::{
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::{Kept, MOST_IN_ALL, Replay};
use crate::{
    forward::{
        Downstream, Fill, Incoming,
        aside::{Aside, Queue},
    },
    worker::Worker,
};

fn worker() -> Rc<Worker> {
    Worker::new(Arc::default())
}

/// Reads up to so many bytes, or to the end; says whether it came to the end.
fn read<I: Incoming>(from: &mut I, most: usize, step: usize, to: &mut Vec<u8>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    let mut takes = false;
    while to.len() < most {
        match from.poll_fill(&mut context) {
            Poll::Ready(Ok(Fill::Data)) => {
                let count = from.filled().len().min(step).min(most - to.len());
                takes = !takes;
                if takes {
                    to.extend_from_slice(&from.take(count));
                } else {
                    to.extend_from_slice(&from.filled()[..count]);
                    from.consume(count);
                }
            }
            Poll::Ready(Ok(Fill::End)) => return true,
            other => panic!("{other:?}"),
        }
    }
    false
}

proptest! {
    #[test]
    fn every_attempt_reads_the_whole_body(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..10),
        stops in proptest::collection::vec((0_usize..400, 1_usize..60), 0..5),
        kept in 0_usize..100,
        has_trailers: bool,
    ) {
        let body = chunks.concat();
        let queue = Rc::<Queue>::default();
        let worker = worker();
        let mut before = Kept::new(&worker);
        let (front, rest) = body.split_at(kept.min(body.len()));
        prop_assert!(before.add(front));
        for chunk in rest.chunks(17) {
            queue.push(&Bytes::copy_from_slice(chunk));
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from_static("1"));
        let trailers = has_trailers.then(|| Box::new(trailers));
        queue.finish(trailers.clone());
        let mut client = Aside::copy(Some(queue));
        let mut replay = Replay::new(&mut client, before, 1000, Vec::new());
        for (stop, step) in stops {
            let mut part = Vec::new();
            read(&mut replay, stop, step, &mut part);
            prop_assert_eq!(&part[..], &body[..part.len()]);
            prop_assert!(replay.can_rewind());
            replay.rewind();
        }
        for _ in 0..2 {
            let mut whole = Vec::new();
            prop_assert!(read(&mut replay, usize::MAX, 7, &mut whole));
            prop_assert_eq!(&whole, &body);
            prop_assert_eq!(replay.take_trailers(), trailers.clone());
            prop_assert_eq!(replay.is_finished(), trailers.is_none());
            replay.rewind();
        }
        prop_assert_eq!(worker.remembered.get(), body.len());
        drop(replay);
        prop_assert_eq!(worker.remembered.get(), 0);
    }

    #[test]
    fn a_body_beyond_the_limit_passes_once(length in 101_usize..1000, step in 1_usize..200) {
        let body: Vec<u8> = (0..length).map(|place| u8::try_from(place % 251).unwrap()).collect();
        let worker = worker();
        let mut client = Aside::question(body.clone().into(), 0);
        let mut replay = Replay::new(&mut client, Kept::new(&worker), 100, Vec::new());
        let mut whole = Vec::new();
        prop_assert!(read(&mut replay, usize::MAX, step, &mut whole));
        prop_assert_eq!(whole, body);
        prop_assert!(!replay.can_rewind());
        prop_assert_eq!(worker.remembered.get(), 0);
    }
}

#[test]
fn all_bodies_together_have_a_limit() {
    let worker = worker();
    let mut first = Kept::new(&worker);
    assert!(first.add(&vec![0; MOST_IN_ALL - 10]));
    let mut second = Kept::new(&worker);
    assert!(second.add(b"0123456789"));
    assert!(!second.add(b"x"));
    // One that is only passing passes, but cannot be sent again.
    let mut client = Aside::question(Bytes::from_static(b"body"), 0);
    let mut replay = Replay::new(&mut client, Kept::new(&worker), 100, Vec::new());
    let mut whole = Vec::new();
    assert!(read(&mut replay, usize::MAX, 10, &mut whole));
    assert_eq!(whole, b"body");
    assert!(!replay.can_rewind());
    drop(first);
    assert!(second.add(b"x"));
}
