//! A Kubernetes cluster as the source of declared objects, and as the place that shows what became of them.
//!
//! [`connect`] finds the cluster, [`watch`] follows every kind we read, [`writer`] makes the API server show status and
//! owned objects, [`lease`] elects the replica that writes, [`replicas`] tells the replicas of each other. The binary wires
//! them to the world and the planner; nothing here decides what a status says.

mod backoff;
mod connect;
mod discovery;
mod failure;
mod hash;
mod lease;
mod leftovers;
mod list_watch;
mod observed;
mod raw;
mod reach;
mod replicas;
mod watch;
mod writer;

pub use connect::{Cluster, ConnectError, ConnectSettings, connect};
pub use hash::stable_hash;
pub use lease::{Lease, LeaseSettings, identity, lease};
pub use leftovers::{Leftover, LeftoverError, Search, leftovers, remove, writer as current_writer};
pub use observed::Observed;
pub use replicas::{OwnerPod, ReplicaSettings, Replicas, replicas};
pub use watch::{Batch, KindState, Standing, States, Watch, WatchSettings, watch};
pub use writer::{
    Failing, OwnedConflict, OwnedKind, OwnedName, OwnedObject, Writer, WriterReport, WriterSettings, writer,
};
