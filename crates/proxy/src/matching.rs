//! Routing tables, compiled from the IR: which entry a request belongs to, in a time that does not grow with their number.
//!
//! The proxy compiles a [`ListenerTable`] per listener whenever the IR changes, giving it the previous one so that only
//! what changed is compiled, and the workers look requests up in it. The answer always equals that of the reference
//! matcher in `gatewright-ir`; property tests hold the two together. Nothing here knows sockets, clusters or HTTP codecs.

mod auth;
mod candidates;
mod cors;
mod entry;
mod filters;
mod hosts;
mod index;
mod patterns;
mod request;
mod rule;
mod table;
mod whole;

pub(crate) use auth::{CompiledAuth, Passed};
pub(crate) use cors::Verdict;
pub(crate) use entry::CompiledEntry;
pub(crate) use filters::{CompiledFilters, HeaderChanges};
pub(crate) use hosts::BindTable;
pub(crate) use request::RequestView;
pub(crate) use rule::CompiledRule;
pub(crate) use table::ListenerTable;
pub(crate) use whole::WholeTable;

#[cfg(test)]
mod tests;
