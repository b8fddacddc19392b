//! What objects should show: their status, computed by the planner, stamped and written by others.
//!
//! A condition here has no time: the planner has no clock. Whoever shows it keeps the time of its last transition.

mod condition;
mod render;
mod status;

pub use condition::{Condition, ConditionKind, Reason, State};
pub use render::{Stamps, render};
pub use status::{ClassStatus, GatewayStatus, ListenerStatus, ParentStatus, RouteStatus, Scope, Status};
