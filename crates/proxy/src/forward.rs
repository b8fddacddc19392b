//! From a request head to a finished exchange: routing, filters, the choice of a backend, retries, timeouts, and the two
//! bodies that travel in opposite directions.
//!
//! The codecs in `h1` and `h2` hand requests in and implement [`Downstream`]; `upstream` provides the other side. Nothing
//! here knows how either side looks on the wire.

mod answer;
mod aside;
mod ask;
mod attempt;
mod authorise;
mod body;
mod check;
mod client;
mod decide;
mod exchange;
mod fields;
pub(crate) mod grpc;
mod job;
mod mirror;
mod prepare;
mod replay;
mod request;
mod retry;
mod seat;
mod table;
mod tunnel;

pub(crate) use answer::{Reason, phrase};
pub(crate) use attempt::forward;
pub(crate) use authorise::Asker;
pub(crate) use body::{BodyError, Fill, Incoming, Outgoing};
pub(crate) use client::{Client, Secured, Traffic, count};
pub(crate) use decide::{Content, Decision, Forward, LocalAnswer, Prepared, decide};
pub(crate) use exchange::{Downstream, Watched};
pub(crate) use fields::{
    Changes, Sender, added_response_fields, is_forwardable_upgrade, request_fields, response_fields,
};
pub(crate) use job::{CLIENT_GONE, Ending, Job, Report};
pub(crate) use prepare::Wanted;
pub(crate) use request::{Field, RequestFacts, RequestParts, ResponseView, is_idempotent};
pub(crate) use table::{Beginning, Held, HeldListener, HeldRoute, Table, WholeRoute};
pub(crate) use tunnel::{End, tunnel};
