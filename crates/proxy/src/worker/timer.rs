//! Deadlines of a worker: one ticker for all connections instead of a timer armed for each read.
//!
//! A connection keeps one [`Deadline`] for its whole life and moves it with a store to a cell. Deadlines stand in a wheel
//! of coarse slots; one that was moved into the future stays where it is and is put further on when its slot comes up, so
//! a busy connection costs the wheel nothing per request. The ticker sleeps until the next slot that holds anything.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

/// The resolution of deadlines in milliseconds.
const TICK_MILLISECONDS: u64 = 10;
/// Slots of the wheel; deadlines further away are looked at again after one turn.
const SLOTS: u64 = 512;
/// The tick that never comes.
const NEVER: u64 = u64::MAX;

/// All deadlines of one worker.
#[derive(Debug)]
pub(crate) struct Wheel {
    start: Instant,
    slots: RefCell<Vec<Vec<Rc<State>>>>,
    /// The last tick that was handled.
    handled: Cell<u64>,
    /// The tick that the ticker sleeps towards.
    target: Cell<u64>,
    ticker: RefCell<Option<Waker>>,
}

#[derive(Debug)]
struct State {
    /// When it expires.
    at: Cell<u64>,
    /// Which tick's slot holds it; entries in other slots are leftovers.
    placed: Cell<u64>,
    is_expired: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// One deadline that can be moved at will.
#[derive(Debug)]
pub(crate) struct Deadline {
    wheel: Rc<Wheel>,
    state: Rc<State>,
}

/// Wakes the task that waits for a deadline without the deadline having come.
#[derive(Clone, Debug)]
pub(crate) struct Nudge(Rc<State>);

impl Wheel {
    /// An empty wheel.
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            start: Instant::now(),
            slots: RefCell::new((0..SLOTS).map(|_| Vec::new()).collect()),
            handled: Cell::new(0),
            target: Cell::new(NEVER),
            ticker: RefCell::new(None),
        })
    }

    /// A deadline that never comes until it is set.
    pub(crate) fn deadline(self: &Rc<Self>) -> Deadline {
        Deadline {
            wheel: Rc::clone(self),
            state: Rc::new(State {
                at: Cell::new(NEVER),
                placed: Cell::new(NEVER),
                is_expired: Cell::new(false),
                waker: RefCell::new(None),
            }),
        }
    }

    /// Turns the wheel for as long as the worker lives.
    pub(crate) async fn run(self: Rc<Self>) {
        loop {
            let Some(next) = self.next_occupied() else {
                self.target.set(NEVER);
                self.until_target_is_before(NEVER).await;
                continue;
            };
            self.target.set(next);
            let wake_at = self.start + Duration::from_millis(next.saturating_mul(TICK_MILLISECONDS));
            let sleep = pin!(tokio::time::sleep_until(wake_at.into()));
            let earlier = pin!(self.until_target_is_before(next));
            futures::future::select(sleep, earlier).await;
            self.turn(self.tick_of(Instant::now()));
        }
    }

    /// Waits until somebody places a deadline before the one that the ticker sleeps towards.
    async fn until_target_is_before(&self, tick: u64) {
        poll_fn(|context| {
            if self.target.get() < tick {
                return Poll::Ready(());
            }
            keep_waker(&self.ticker, context);
            Poll::Pending
        })
        .await;
    }

    /// The number of whole ticks at a moment.
    fn tick_of(&self, moment: Instant) -> u64 {
        let elapsed = moment.saturating_duration_since(self.start).as_millis();
        u64::try_from(elapsed).unwrap_or(NEVER - 1) / TICK_MILLISECONDS
    }

    fn next_occupied(&self) -> Option<u64> {
        let slots = self.slots.borrow();
        let first = self.handled.get() + 1;
        (first..first + SLOTS).find(|tick| slots.get(slot_of(*tick)).is_some_and(|slot| !slot.is_empty()))
    }

    fn place(&self, state: &Rc<State>, at: u64) {
        // Not in the past, and not beyond one turn.
        let tick = at.clamp(self.handled.get() + 1, self.handled.get() + SLOTS - 1);
        state.placed.set(tick);
        if let Some(slot) = self.slots.borrow_mut().get_mut(slot_of(tick)) {
            slot.push(Rc::clone(state));
        }
        if tick < self.target.get() {
            self.target.set(tick);
            if let Some(waker) = self.ticker.borrow().as_ref() {
                waker.wake_by_ref();
            }
        }
    }

    /// Handles every slot up to a tick.
    fn turn(&self, now: u64) {
        while self.handled.get() < now {
            // After a long sleep most slots are empty and one turn has seen them all.
            let tick = (self.handled.get() + 1).max(now.saturating_sub(SLOTS));
            self.handled.set(tick);
            let due = self
                .slots
                .borrow_mut()
                .get_mut(slot_of(tick))
                .map(std::mem::take)
                .unwrap_or_default();
            for state in due {
                if state.placed.get() > tick {
                    continue;
                }
                state.placed.set(NEVER);
                let at = state.at.get();
                if at <= now {
                    state.at.set(NEVER);
                    state.is_expired.set(true);
                    state.wake();
                } else if at != NEVER {
                    self.place(&state, at);
                }
            }
        }
    }
}

impl Deadline {
    /// Moves the deadline to `after` from `now`.
    pub(crate) fn set(&self, now: Instant, after: Duration) {
        self.set_at(now + after);
    }

    /// Moves the deadline.
    pub(crate) fn set_at(&self, moment: Instant) {
        // One tick more, so that a deadline never comes early.
        let at = self.wheel.tick_of(moment) + 1;
        self.state.is_expired.set(false);
        self.state.at.set(at);
        if at < self.state.placed.get() {
            self.wheel.place(&self.state, at);
        }
    }

    /// Makes the deadline come now.
    pub(crate) fn expire(&self) {
        self.state.at.set(NEVER);
        self.state.is_expired.set(true);
        self.state.wake();
    }

    /// Takes the deadline away.
    pub(crate) fn clear(&self) {
        self.state.at.set(NEVER);
        self.state.is_expired.set(false);
    }

    /// Ready when the deadline has come. The task is woken then, and when it is nudged.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.state.is_expired.get() {
            return Poll::Ready(());
        }
        keep_waker(&self.state.waker, context);
        Poll::Pending
    }

    /// Runs a future until the deadline.
    pub(crate) async fn guard<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => self.poll(context).map(|()| None),
        })
        .await
    }

    /// A handle that wakes the task which polls this deadline.
    pub(crate) fn nudge(&self) -> Nudge {
        Nudge(Rc::clone(&self.state))
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.state.at.set(NEVER);
        self.state.waker.take();
    }
}

impl Nudge {
    /// Wakes the task.
    pub(crate) fn wake(&self) {
        self.0.wake();
    }
}

impl State {
    fn wake(&self) {
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}

/// Stores the waker of the current task unless it is there already.
fn keep_waker(place: &RefCell<Option<Waker>>, context: &Context<'_>) {
    let mut place = place.borrow_mut();
    if !place.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
        *place = Some(context.waker().clone());
    }
}

fn slot_of(tick: u64) -> usize {
    // A remainder below 512 fits every integer.
    usize::try_from(tick % SLOTS).unwrap_or_default()
}

#[cfg(test)]
mod tests;
