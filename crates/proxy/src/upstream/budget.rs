//! How many retries a backend may get, as one worker counts them.
//!
//! Each worker sees its share of the requests and keeps the same share of them for retries, so that all together keep it
//! without knowing of each other. The number that is always allowed is each worker's own; the specification expects clients
//! to apply it each for itself. Only backends with a policy come here.

use std::{
    cell::RefCell,
    collections::VecDeque,
    rc::{Rc, Weak},
    time::{Duration, Instant},
};

use ahash::AHashMap;
use gatewright_ir::{Origin, RetryBudget};

/// Times are counted in so many parts, so that memory stays small however many requests come.
const PARTS: u32 = 10;

/// What a backend got lately.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: RetryBudget,
    attempts: RefCell<Window>,
    retries: RefCell<Window>,
    recent_retries: RefCell<Window>,
}

impl Budget {
    pub(crate) fn new(limits: RetryBudget) -> Self {
        Self {
            limits,
            attempts: RefCell::new(Window::new(limits.interval)),
            retries: RefCell::new(Window::new(limits.interval)),
            recent_retries: RefCell::new(Window::new(limits.least_interval)),
        }
    }

    /// Counts an attempt, the first of a request or another.
    pub(crate) fn attempted(&self, now: Instant) {
        self.attempts.borrow_mut().add(now);
    }

    /// Whether there may be another retry now; if so, it is counted.
    pub(crate) fn take(&self, now: Instant) -> bool {
        let attempts = u64::from(self.attempts.borrow_mut().sum(now));
        let retries = u64::from(self.retries.borrow_mut().sum(now));
        let is_within_share = retries.saturating_mul(100) < attempts.saturating_mul(u64::from(self.limits.percent));
        let is_few = self.recent_retries.borrow_mut().sum(now) < self.limits.least;
        let may = is_within_share || is_few;
        if may {
            self.retries.borrow_mut().add(now);
            self.recent_retries.borrow_mut().add(now);
        }
        may
    }
}

/// A count over the last so much time.
#[derive(Debug)]
struct Window {
    part: Duration,
    /// The beginnings of parts with their counts, the oldest first.
    counts: VecDeque<(Instant, u32)>,
}

impl Window {
    fn new(length: Duration) -> Self {
        Self {
            part: length / PARTS,
            counts: VecDeque::new(),
        }
    }

    fn add(&mut self, now: Instant) {
        match self.counts.back_mut() {
            Some((begun, count)) if now.saturating_duration_since(*begun) < self.part => {
                *count = count.saturating_add(1);
            }
            _ => self.counts.push_back((now, 1)),
        }
        self.forget(now);
    }

    fn sum(&mut self, now: Instant) -> u32 {
        self.forget(now);
        self.counts
            .iter()
            .fold(0, |sum, (_, count)| u32::saturating_add(sum, *count))
    }

    fn forget(&mut self, now: Instant) {
        let length = self.part.saturating_mul(PARTS);
        while let Some((begun, _)) = self.counts.front()
            && now.saturating_duration_since(*begun) >= length
        {
            self.counts.pop_front();
        }
    }
}

/// The budgets of a worker, by backend: rules that share a backend share its budget.
#[derive(Debug, Default)]
pub(crate) struct Budgets(RefCell<AHashMap<Origin, Weak<Budget>>>);

impl Budgets {
    /// The budget of a backend. Other limits than before begin anew.
    pub(crate) fn budget(&self, backend: &Origin, limits: RetryBudget) -> Rc<Budget> {
        let mut budgets = self.0.borrow_mut();
        let known = budgets.get(backend).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.limits == limits) {
            return known;
        }
        budgets.retain(|_, budget| budget.strong_count() > 0);
        let made = Rc::new(Budget::new(limits));
        budgets.insert(backend.clone(), Rc::downgrade(&made));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(percent: u8, least: u32) -> RetryBudget {
        RetryBudget {
            percent,
            interval: Duration::from_secs(10),
            least,
            least_interval: Duration::from_secs(1),
        }
    }

    #[test]
    fn retries_stay_within_their_share_of_all_attempts() {
        let budget = Budget::new(limits(20, 0));
        let now = Instant::now();
        for _ in 0..100 {
            budget.attempted(now);
        }
        let taken = (0..100).filter(|_| budget.take(now)).count();
        assert_eq!(taken, 20);
        // What lies back longer than the interval counts no more, on either side.
        let later = now + Duration::from_secs(11);
        assert!(!budget.take(later), "nothing was attempted lately");
        for _ in 0..5 {
            budget.attempted(later);
        }
        assert!(budget.take(later) && !budget.take(later));
    }

    #[test]
    fn a_few_retries_are_always_allowed() {
        let budget = Budget::new(limits(0, 3));
        let now = Instant::now();
        let taken = |at| (0..10).filter(|_| budget.take(at)).count();
        assert_eq!(taken(now), 3);
        assert_eq!(taken(now + Duration::from_millis(500)), 0);
        assert_eq!(taken(now + Duration::from_millis(1100)), 3);
    }

    #[test]
    fn a_window_does_not_grow_with_what_it_counts() {
        let mut window = Window::new(Duration::from_secs(10));
        let start = Instant::now();
        for millis in 0..100_000 {
            window.add(start + Duration::from_millis(millis));
        }
        assert!(window.counts.len() <= PARTS as usize + 1, "{}", window.counts.len());
        let sum = window.sum(start + Duration::from_secs(100));
        assert!((9_000..=10_000).contains(&sum), "{sum}");
    }

    #[test]
    fn rules_that_share_a_backend_share_its_budget() {
        let budgets = Budgets::default();
        let web = Origin::new("web");
        let first = budgets.budget(&web, limits(20, 1));
        assert!(Rc::ptr_eq(&first, &budgets.budget(&web, limits(20, 1))));
        assert!(!Rc::ptr_eq(&first, &budgets.budget(&web, limits(30, 1))));
        assert!(!Rc::ptr_eq(&first, &budgets.budget(&Origin::new("api"), limits(20, 1))));
    }
}
