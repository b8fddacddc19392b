//! Whether traffic should be sent here: starting, ready or draining.
//!
//! The spine says when the first plan listens, the shutdown says when draining begins; the probes and commands that wait
//! for the start read it.

use tokio::sync::watch;

/// How far the process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing has been served yet, for this reason.
    Starting(String),
    /// The first plan is listening.
    Ready,
    /// Connections are being finished.
    Draining,
}

impl State {
    /// One word.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Starting(_) => "Starting",
            Self::Ready => "Ready",
            Self::Draining => "Draining",
        }
    }
}

/// The shared state. Cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct Readiness(watch::Sender<State>);

impl Readiness {
    /// Nothing has been served yet, for this reason.
    pub(crate) fn new(reason: &str) -> Self {
        Self(watch::Sender::new(State::Starting(reason.to_owned())))
    }

    pub(crate) fn state(&self) -> State {
        self.0.borrow().clone()
    }

    pub(crate) fn is_starting(&self) -> bool {
        matches!(*self.0.borrow(), State::Starting(_))
    }

    /// Says what is still awaited. Has no effect once ready.
    pub(crate) fn starting(&self, reason: String) {
        self.change(|state| matches!(state, State::Starting(_)), State::Starting(reason));
    }

    /// Says that the first plan is listening. Has no effect while draining.
    pub(crate) fn ready(&self) {
        self.change(|state| matches!(state, State::Starting(_)), State::Ready);
    }

    pub(crate) fn draining(&self) {
        self.change(|_| true, State::Draining);
    }

    /// Waits for the end of the start.
    pub(crate) async fn started(&self) {
        let mut receiver = self.0.subscribe();
        // Cannot fail: the sender is `self`.
        let _ = receiver.wait_for(|state| !matches!(state, State::Starting(_))).await;
    }

    fn change(&self, applies: impl Fn(&State) -> bool, next: State) {
        self.0.send_if_modified(|state| {
            let changes = applies(state) && *state != next;
            if changes {
                *state = next;
            }
            changes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Readiness, State};

    #[test]
    fn a_draining_process_never_becomes_ready_again() {
        let readiness = Readiness::new("nothing has been read yet");
        assert!(matches!(readiness.state(), State::Starting(_)));
        readiness.ready();
        readiness.starting("again".to_owned());
        assert_eq!(readiness.state(), State::Ready);
        readiness.draining();
        readiness.ready();
        assert_eq!(readiness.state(), State::Draining);
    }
}
