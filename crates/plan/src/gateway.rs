//! Gateways: from a declaration to a frame that routes attach to, and from a frame with its routes to IR and status.

mod addresses;
mod certificates;
mod config;
mod conflicts;
mod entry;
mod frame;
mod listeners;
mod owned;
mod progress;
mod sets;
mod status;
mod table;
mod targets;

pub(crate) use addresses::{Assignment, assign};
pub(crate) use entry::{Balancer, Entry};
pub(crate) use frame::{Frame, ListenerFrame, Trouble, Verdict, build};
pub(crate) use owned::{kept, owned};
pub(crate) use sets::set_status;
pub(crate) use status::status;
pub(crate) use table::{Table, emit};

#[cfg(test)]
mod tests;
