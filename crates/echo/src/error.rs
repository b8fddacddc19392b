//! What can go wrong when an echo backend starts.
//!
//! Returned by the settings and by the server's start. Nothing that happens on a running connection is an error here:
//! that is for the peer to see.

use std::{io, net::SocketAddr, path::PathBuf};

/// Why an echo backend could not start.
#[derive(Debug, thiserror::Error)]
pub enum EchoError {
    /// An environment variable holds something else than its kind of value.
    #[error("{name}={value} is not {expected}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// What it holds.
        value: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// A certificate or key file cannot be read.
    #[error("cannot read {} (named by {name}): {source}", path.display())]
    File {
        /// The variable that names the file.
        name: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The certificate, key or client CA is unusable.
    #[error("the TLS certificate, key or client CA is unusable: {0}")]
    Tls(String),
    /// A port cannot be opened.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}
