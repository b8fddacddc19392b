//! HTTP/2: connections of clients, and the heads of requests to backends that speak it.
//!
//! Framing, flow control and the limits against floods are the `h2` crate's; this module maps its streams to exchanges. A
//! stream is a task of its own, so that one slow exchange holds up no other.

mod heads;
mod replay;
mod serve;
pub(crate) mod stream;

pub(crate) use heads::request;
pub(crate) use replay::Replayed;
pub(crate) use serve::serve;
