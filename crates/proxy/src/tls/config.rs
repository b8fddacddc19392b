//! The TLS configuration of one listener.
//!
//! Called by the table when something about a listener changed. Each listener has ticket keys of its own, which change with
//! whom it lets in, so that a session begun on one set of terms cannot be resumed on another.

use std::sync::Arc;

use gatewright_ir::ClientValidation;
use rustls::{
    Error, ServerConfig,
    server::{NoServerSessionStorage, ProducesTickets},
};

use super::{
    certificates::ListenerCertificates,
    clients,
    provider::{PROVIDER, VERSIONS},
    tickets::tickets,
};

/// Tickets per handshake. A client with HTTP/2 needs one connection, and gets another ticket with each.
const TICKETS: usize = 1;

/// The configuration of a listener. `before` are the ticket keys it had, if its terms are the same.
pub(super) fn configuration(
    certificates: &Arc<ListenerCertificates>,
    clients: Option<&ClientValidation>,
    protocols: &[&[u8]],
    before: Option<Arc<dyn ProducesTickets>>,
) -> Result<ServerConfig, Error> {
    if !certificates.is_any_usable() {
        return Err(Error::NoCertificatesPresented);
    }
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&PROVIDER))
        .with_protocol_versions(&VERSIONS)?
        .with_client_cert_verifier(clients::verifier(clients)?)
        .with_cert_resolver(Arc::clone(certificates) as _);
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    config.ticketer = match before {
        Some(tickets) => tickets,
        None => tickets(clients.is_some())?,
    };
    config.send_tls13_tickets = TICKETS;
    // Tickets are enough, and a shared store would be a lock between workers.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}
