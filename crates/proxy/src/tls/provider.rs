//! The one crypto provider of the data plane, for clients and for backends.

use std::sync::{Arc, LazyLock};

use rustls::{
    SupportedProtocolVersion,
    crypto::{
        CryptoProvider,
        aws_lc_rs::{
            self,
            kx_group::{SECP256R1, SECP384R1, X25519, X25519MLKEM768},
        },
    },
    version::{TLS12, TLS13},
};

/// The versions that are spoken.
pub(crate) static VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

/// The provider, whatever the process has installed.
pub(crate) static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    let mut provider = aws_lc_rs::default_provider();
    // A hybrid key exchange first, so that traffic recorded today stays secret from the computers of tomorrow.
    provider.kx_groups = vec![X25519MLKEM768, X25519, SECP256R1, SECP384R1];
    Arc::new(provider)
});
