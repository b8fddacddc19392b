//! The keys of session tickets.
//!
//! A ticket brings a client back without its certificate being looked at again, so where clients are asked for one, keys
//! live only for a short while. All workers share them; old keys are forgotten one turn after the new ones came.

use std::sync::Arc;

use rustls::{Error, crypto::aws_lc_rs::Ticketer, server::ProducesTickets, ticketer::TicketRotator};

/// How often keys change where clients are asked for certificates, in seconds. Tickets are good for up to twice as long.
const SHORT: u32 = 15 * 60;

/// Keys for a listener. Without certificates of clients they change every six hours.
pub(super) fn tickets(asks_clients: bool) -> Result<Arc<dyn ProducesTickets>, Error> {
    if !asks_clients {
        return Ticketer::new();
    }
    let keys = || match Ticketer::new() {
        Ok(keys) => Ok(Box::new(Keys(keys)) as Box<dyn ProducesTickets>),
        Err(_) => Err(rustls::crypto::GetRandomFailed),
    };
    Ok(Arc::new(TicketRotator::new(SHORT, keys)?))
}

/// The library's keys, for less time than it would use them.
#[derive(Debug)]
struct Keys(Arc<dyn ProducesTickets>);

impl ProducesTickets for Keys {
    fn enabled(&self) -> bool {
        self.0.enabled()
    }

    fn lifetime(&self) -> u32 {
        SHORT
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        self.0.encrypt(session)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.0.decrypt(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::tickets;

    #[test]
    fn where_clients_are_asked_for_certificates_tickets_live_shorter() {
        let (usual, short) = (tickets(false).unwrap(), tickets(true).unwrap());
        assert_eq!((usual.lifetime(), short.lifetime()), (12 * 60 * 60, 30 * 60));
        let ticket = short.encrypt(b"session").unwrap();
        assert_eq!(short.decrypt(&ticket).unwrap(), b"session");
        assert_eq!(tickets(true).unwrap().decrypt(&ticket), None);
    }
}
