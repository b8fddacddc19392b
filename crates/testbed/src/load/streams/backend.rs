//! The other end of connections that are measured: it sends by itself, whatever it is sent.
//!
//! Runs as a process of its own beside the generator.

use std::{net::SocketAddrV4, time::Duration};

use anyhow::Context;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// What connections without end are filled with.
pub const BYTE: u8 = b'x';
/// What the others get.
pub const LINE: &[u8] = b"0123456789012345678901234567890\n";

/// What is written at once.
const BUFFER: usize = 256 * 1024;
/// How long the other side may take to close.
const LINGER: Duration = Duration::from_secs(5);

/// Serves two addresses for as long as the process lives: one with connections without end, one with a line each.
pub fn serve(bulk: SocketAddrV4, line: SocketAddrV4) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listen = async |address: SocketAddrV4| {
            TcpListener::bind(address)
                .await
                .with_context(|| format!("cannot listen on {address}"))
        };
        let (bulk, line) = (listen(bulk).await?, listen(line).await?);
        loop {
            tokio::select! {
                accepted = bulk.accept() => drop(tokio::spawn(fill(accepted?.0))),
                accepted = line.accept() => drop(tokio::spawn(say(accepted?.0))),
            }
        }
    })
}

/// Sends until the other side closes.
async fn fill(mut stream: TcpStream) {
    let buffer = vec![BYTE; BUFFER];
    while stream.write_all(&buffer).await.is_ok() {}
}

/// Sends the line and closes, properly: what the other side sends is read to its end.
async fn say(mut stream: TcpStream) {
    let ending = async {
        stream.write_all(LINE).await?;
        stream.shutdown().await?;
        let mut ignored = [0; 4096];
        while stream.read(&mut ignored).await? > 0 {}
        std::io::Result::Ok(())
    };
    // Whoever breaks off is told so by the other end.
    let _ = timeout(LINGER, ending).await;
}
