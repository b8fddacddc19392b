//! What objects should show, and which objects should be there: computed by the planner, stamped and written by others.
//!
//! A condition here has no time: the planner has no clock. Whoever shows it keeps the time of its last transition.

mod condition;
pub mod owned;
mod render;
mod status;

pub use condition::{Condition, ConditionKind, Reason, State};
pub use owned::{Owned, OwnedBody, OwnedKind, OwnedName};
pub use render::{Stamps, render};
pub use status::{
    Address, ClassStatus, GatewayStatus, ListenerStatus, ParentStatus, PolicyStatus, RouteStatus, Scope, SetStatus,
    Status,
};
