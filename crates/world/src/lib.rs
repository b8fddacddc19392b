//! Every declared object, reduced to what planning reads, and what the planes observed.
//!
//! Sources and planes put changes in; the planner reads objects, indexes and the set of what changed. One task owns the
//! world, nothing else holds declared state, and there is no lock and no I/O here. The types of desired state (status) live
//! here too, because both the planner that computes them and the writers that show them need them.

mod change;
pub mod desired;
mod grants;
mod index;
mod key;
pub mod object;
pub mod origin;
mod replica;
pub mod resolve;
mod world;

pub use change::ChangeSet;
pub use grants::Grants;
pub use index::Index;
pub use key::{Interner, Key};
pub use replica::{Encoded, ListenerFact, Replica, ReplicaError};
pub use world::{ConfigStanding, Validity, World};
