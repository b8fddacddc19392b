//! TLS for the listeners that terminate it: which listener and which certificate a client asks for, and the handshake.
//!
//! The runtime compiles a [`TlsTable`] per address and port whenever the listeners there change, and calls [`accept`] for
//! every connection. Nothing here knows HTTP, routes or sockets; a connection is any two-way stream. What it returns
//! names the listener that was selected, because requests for another listener's host must then be refused (421).

mod accept;
mod certificates;
mod clients;
mod config;
mod provider;
mod table;

pub(crate) use accept::{Alpn, accept};
pub(crate) use clients::roots;
pub(crate) use provider::{PROVIDER, VERSIONS};
pub(crate) use table::TlsTable;

#[cfg(test)]
mod tests;
