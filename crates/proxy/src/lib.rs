//! The embedded data plane

mod dns;
mod hygiene;
mod matching;
mod normalise;
mod query;
mod redirect;
mod tls;
