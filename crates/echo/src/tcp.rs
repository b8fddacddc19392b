//! The TCP echo: a greeting, then one answer per line.
//!
//! The server calls [`serve`] for each connection of a TCP or TLS port. The backend speaks first, so a proxy that
//! waits for the client's bytes is found out.

use std::{io, sync::Arc};

use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufStream};

use crate::{Identity, backend::Session, tls::TlsFacts};

const GREETING: &[u8] = b"Gateway API Test TCP Server\n";

/// The longest line read in one piece; a longer one counts as several.
const LONGEST_LINE: u64 = 64 << 10;

#[derive(Serialize)]
struct Assertions<'session> {
    #[serde(flatten)]
    identity: &'session Identity,
    tcpport: &'session str,
    #[serde(skip_serializing_if = "str::is_empty")]
    tlsport: &'session str,
    #[serde(rename = "isTLS")]
    is_tls: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<Tls<'session>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tls<'session> {
    version: String,
    server_name: &'session str,
    #[serde(skip_serializing_if = "str::is_empty")]
    negotiated_protocol: &'session str,
    #[serde(skip_serializing_if = "str::is_empty")]
    curves: &'session str,
    cipher_suite: &'session str,
}

/// Serves one connection until either side closes.
pub(crate) async fn serve<S>(stream: S, session: Arc<Session>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut shutdown = session.shutdown.clone();
    let result = tokio::select! {
        result = answer_lines(BufStream::new(stream), &session) => result,
        () = shutdown.requested() => Ok(()),
    };
    if let Err(error) = result {
        tracing::debug!(peer = %session.peer, %error, "connection ended");
    }
}

async fn answer_lines<S>(mut stream: BufStream<S>, session: &Session) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(GREETING).await?;
    stream.flush().await?;
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut stream).take(LONGEST_LINE).read_until(b'\n', &mut line).await? == 0 {
            return stream.shutdown().await;
        }
        session.backend.counters.count_request();
        match line.trim_ascii_end() {
            b"PING" => stream.write_all(b"PONG\n").await?,
            b"IS_TLS" if session.tls.is_some() => stream.write_all(b"true\n").await?,
            b"IS_TLS" => stream.write_all(b"false\n").await?,
            b"TEST" => stream.write_all(&assertions(session)?).await?,
            _ => stream.write_all(&line).await?,
        }
        stream.flush().await?;
    }
}

fn assertions(session: &Session) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(&Assertions {
        identity: &session.backend.identity,
        tcpport: &session.backend.port,
        tlsport: &session.backend.tls_port,
        is_tls: session.tls.is_some(),
        tls: session.tls.as_ref().map(tls_assertions),
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn tls_assertions(facts: &TlsFacts) -> Tls<'_> {
    Tls {
        version: format!("TLS {}", facts.version),
        server_name: &facts.server_name,
        negotiated_protocol: &facts.negotiated_protocol,
        curves: &facts.curve,
        cipher_suite: &facts.cipher_suite,
    }
}
