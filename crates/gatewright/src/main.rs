//! The `gatewright` binary: allocator, TLS provider, and off into the library.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Fails only if a provider is installed already, and nothing has run yet.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    gatewright::parse_and_run()
}
