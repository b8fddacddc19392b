//! The `gatewright` binary: allocator, TLS provider, and off into the library.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // A proxy's memory is many small things, and huge pages would keep whole ones for parts of them: half of what an idle
    // process holds. Fails only on kernels without huge pages.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    // Fails only if a provider is installed already, and nothing has run yet.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    gatewright::parse_and_run()
}
