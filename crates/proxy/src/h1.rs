//! HTTP/1.1: the strict codec for both sides, and the client's side of an exchange.
//!
//! Heads are parsed in place and written in one piece; bodies stream through the worker's buffers. What cannot be
//! understood in exactly one way is refused. Routing and backends are reached through `forward`.

mod chunked;
mod encode;
mod head;
mod read;
mod response;
mod serve;
mod server;
mod write;

pub(crate) use encode::write_request;
pub(crate) use head::{BodyLength, parse_length, slots};
pub(crate) use read::Reader;
pub(crate) use response::parse_response;
pub(crate) use serve::{serve, serve_clear};
pub(crate) use write::{Encoding, Writer};
