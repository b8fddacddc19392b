use std::{
    cell::Cell,
    rc::Rc,
    time::{Duration, Instant},
};

use super::Wheel;

const SHORT: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_mins(10);

fn run<F: Future>(test: impl FnOnce(Rc<Wheel>) -> F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build_local(tokio::runtime::LocalOptions::default())
        .unwrap();
    runtime.block_on(async {
        let wheel = Wheel::new();
        tokio::task::spawn_local(Rc::clone(&wheel).run());
        tokio::time::timeout(Duration::from_secs(20), test(wheel))
            .await
            .unwrap()
    })
}

#[test]
fn a_deadline_comes_in_time_and_never_early() {
    run(|wheel| async move {
        for _ in 0..3 {
            let begun = Instant::now();
            let deadline = wheel.deadline();
            deadline.set(begun, SHORT);
            assert!(deadline.guard(std::future::pending::<()>()).await.is_none());
            assert!(begun.elapsed() >= SHORT, "{:?}", begun.elapsed());
        }
    });
}

#[test]
fn a_deadline_that_is_moved_on_or_taken_away_does_not_come() {
    run(|wheel| async move {
        let (moved, cleared, watch) = (wheel.deadline(), wheel.deadline(), wheel.deadline());
        let now = Instant::now();
        for deadline in [&moved, &cleared, &watch] {
            deadline.set(now, SHORT);
        }
        moved.set(now, LONG);
        cleared.clear();
        watch.set(now, SHORT * 3);
        assert!(watch.guard(std::future::pending::<()>()).await.is_none());
        let is_expired = |deadline: &super::Deadline| {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            deadline.poll(&mut context).is_ready()
        };
        assert!(!is_expired(&moved) && !is_expired(&cleared));
    });
}

#[test]
fn a_deadline_beyond_one_turn_of_the_wheel_can_be_moved_closer() {
    run(|wheel| async move {
        let deadline = wheel.deadline();
        deadline.set(Instant::now(), LONG);
        deadline.set(Instant::now(), SHORT);
        assert!(deadline.guard(std::future::pending::<()>()).await.is_none());
        // And used again afterwards.
        deadline.set(Instant::now(), SHORT);
        assert!(deadline.guard(std::future::pending::<()>()).await.is_none());
    });
}

#[test]
fn a_busy_deadline_costs_the_wheel_one_place() {
    run(|wheel| async move {
        let deadline = wheel.deadline();
        for _ in 0..1000 {
            deadline.set(Instant::now(), LONG);
            deadline.clear();
        }
        let places: usize = wheel.slots.borrow().iter().map(Vec::len).sum();
        assert_eq!(places, 1);
    });
}

#[test]
fn a_nudge_wakes_the_one_who_waits() {
    run(|wheel| async move {
        let deadline = wheel.deadline();
        let nudge = deadline.nudge();
        let is_over = Rc::new(Cell::new(false));
        let flag = Rc::clone(&is_over);
        let waiting = tokio::task::spawn_local(async move {
            deadline
                .guard(std::future::poll_fn(|_| {
                    if flag.get() {
                        std::task::Poll::Ready(())
                    } else {
                        std::task::Poll::Pending
                    }
                }))
                .await
        });
        tokio::task::yield_now().await;
        is_over.set(true);
        nudge.wake();
        assert_eq!(waiting.await.unwrap(), Some(()));
    });
}
