//! The byte streams that HTTP runs on.
//!
//! [`ResettableStream`] is a TCP connection that can end with a reset instead of an orderly close;
//! [`CasingStream`] restores the case of header names that the HTTP library writes in its own. Neither knows HTTP
//! beyond the look of a header line.

mod casing;
mod resettable;

pub(crate) use casing::{CasingStream, HeaderCasing};
pub(crate) use resettable::ResettableStream;
