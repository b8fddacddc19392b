//! How a replica leaves a cluster without costing a request.
//!
//! First it says that it leaves, so that whoever writes takes it out of the Services. Then it still accepts connections for
//! a moment: those who send them hear of it last. If it is itself the one who writes, it does until then, and hands it on.

use std::time::Duration;

use gatewright_source::kube::{Lease, Writer};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What cannot be written in this time is left to the next writer.
const LONGEST_WRITE: Duration = Duration::from_secs(8);
/// So much for what others said meanwhile.
const LONGEST_REST: Duration = Duration::from_secs(3);
/// A lease that cannot be released in this time runs out by itself.
const LONGEST_RELEASE: Duration = Duration::from_secs(3);

/// Part in the election, and the way out.
pub(crate) struct Membership {
    lease: Lease,
    writer: Writer,
    delay: Duration,
    // Ends with the lease.
    _follow: JoinHandle<()>,
}

/// A request to leave and its answer, between the application and the spine.
#[derive(Clone, Default)]
pub(crate) struct Leave {
    /// The spine shall plan as one that leaves.
    pub(crate) asked: CancellationToken,
    /// It has, and has told the cluster.
    pub(crate) told: CancellationToken,
}

impl Membership {
    /// Writes while the lease is held.
    pub(super) fn new(lease: Lease, writer: Writer, delay: Duration) -> Self {
        let mut is_leader = lease.is_leader();
        let follower = writer.clone();
        let follow = async move {
            loop {
                let leads = *is_leader.borrow_and_update();
                follower.set_leader(leads);
                if is_leader.changed().await.is_err() {
                    follower.set_leader(false);
                    return;
                }
            }
        };
        Self {
            lease,
            writer,
            delay,
            _follow: tokio::spawn(follow),
        }
    }

    /// Leaves: returns when no more connections are to be expected.
    pub(crate) async fn leave(self, leave: &Leave) {
        leave.asked.cancel();
        let told = async {
            leave.told.cancelled().await;
            self.writer.settled().await;
        };
        // The writing is handed on last: of replicas that leave at the same time, none would write that the others do.
        let ((), told) = tokio::join!(
            tokio::time::sleep(self.delay),
            tokio::time::timeout(LONGEST_WRITE, told)
        );
        let rest = tokio::time::timeout(LONGEST_REST, self.writer.settled()).await;
        if told.is_err() || rest.is_err() {
            tracing::warn!("the cluster could not be told everything; the next writer will");
        }
        if tokio::time::timeout(LONGEST_RELEASE, self.lease.release())
            .await
            .is_err()
        {
            tracing::warn!("the lease could not be released; it will run out");
        }
    }
}
