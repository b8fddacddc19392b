//! The threads that carry traffic. Each has a runtime, sockets, deadlines, buffers and upstream connections of its own.
//!
//! The handle in `proxy.rs` sends [`Command`]s to open and close sockets; what happens to requests is swapped in through
//! the [`Bind`] that sockets share. A connection lives and dies on the worker that accepted it.

mod accept;
mod bind;
mod buffer;
mod command;
mod sockets;
mod thread;
mod timer;

pub(crate) use self::bind::{Bind, BindAddress, BoundConnection, LocalBind};
pub(crate) use buffer::{Buffer, Stock};
pub(crate) use command::Command;
pub(crate) use sockets::{Bound, bind, failure, keepalive};
pub(crate) use thread::{Worker, WorkerHandle};
pub(crate) use timer::Deadline;
