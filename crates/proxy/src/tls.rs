//! TLS for the listeners that begin with it: which listener and which certificate a client asks for, and the handshake,
//! unless a backend makes it.
//!
//! The runtime compiles a [`TlsTable`] per address and port whenever the listeners there change, and calls [`accept`] for
//! every connection. Nothing here knows HTTP, routes or sockets; a connection is any two-way stream. What it returns
//! names the listener that was selected, because requests for another listener's host must then be refused (421).

mod accept;
mod certificates;
mod clients;
mod config;
mod hello;
mod provider;
mod table;
mod tickets;

pub(crate) use accept::{Accepted, Alpn, Begun, Passed, accept};
pub(crate) use clients::roots;
pub(crate) use provider::{PROVIDER, VERSIONS};
pub(crate) use table::TlsTable;

#[cfg(test)]
pub(crate) mod tests;
