//! Echoes WebSocket frames.
//!
//! Runs on an upgraded connection. Data frames go back one by one as they came, fragments as fragments, so any message
//! comes back whole. Text is not checked to be UTF-8: what was sent is what returns.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufStream};

use crate::shutdown::Shutdown;

/// The largest frame echoed.
const LARGEST_FRAME: u64 = 16 << 20;

const FINAL: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

const GOING_AWAY: u16 = 1001;
const PROTOCOL_ERROR: u16 = 1002;
const TOO_BIG: u16 = 1009;

struct Frame {
    is_final: bool,
    kind: u8,
    payload: Vec<u8>,
}

/// A frame, or the status to close with.
type Received = Result<Frame, u16>;

/// Echoes until either side closes.
pub(super) async fn echo<S>(stream: S, shutdown: &mut Shutdown) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut stream = BufStream::new(stream);
    let mut is_fragmented = false;
    loop {
        let received = tokio::select! {
            received = read(&mut stream) => received?,
            // Reading is broken off in the middle of a frame, which is fine: nothing is read after the close.
            () = shutdown.requested() => Err(GOING_AWAY),
        };
        let frame = match received {
            Ok(frame) => frame,
            Err(status) => return close(&mut stream, &status.to_be_bytes()).await,
        };
        match frame.kind {
            CLOSE => return close(&mut stream, &frame.payload).await,
            PING => write(&mut stream, true, PONG, &frame.payload).await?,
            PONG => {}
            kind => {
                // A message starts with its kind and goes on with continuations.
                if (kind == CONTINUATION) != is_fragmented {
                    return close(&mut stream, &PROTOCOL_ERROR.to_be_bytes()).await;
                }
                is_fragmented = !frame.is_final;
                write(&mut stream, frame.is_final, kind, &frame.payload).await?;
            }
        }
    }
}

async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Received> {
    let first = stream.read_u8().await?;
    let second = stream.read_u8().await?;
    let (is_final, kind) = (first & FINAL != 0, first & 0x0f);
    let is_control = kind >= CLOSE;
    let length = match second & !MASKED {
        126 => u64::from(stream.read_u16().await?),
        127 => stream.read_u64().await?,
        short => u64::from(short),
    };
    let is_known = matches!(kind, CONTINUATION | TEXT | BINARY | CLOSE | PING | PONG);
    // Clients must mask; control frames are short and whole.
    if first & RESERVED != 0 || !is_known || second & MASKED == 0 || (is_control && (!is_final || length > 125)) {
        return Ok(Err(PROTOCOL_ERROR));
    }
    if length > LARGEST_FRAME {
        return Ok(Err(TOO_BIG));
    }
    let mask = stream.read_u32().await?.to_be_bytes();
    let mut payload = vec![0; usize::try_from(length).unwrap_or_default()];
    stream.read_exact(&mut payload).await?;
    for (byte, key) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
    Ok(Ok(Frame {
        is_final,
        kind,
        payload,
    }))
}

async fn write<S: AsyncWrite + Unpin>(stream: &mut S, is_final: bool, kind: u8, payload: &[u8]) -> io::Result<()> {
    stream.write_u8(if is_final { FINAL | kind } else { kind }).await?;
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(length), _) if length < 126 => stream.write_u8(length).await?,
        (_, Ok(length)) => {
            stream.write_u8(126).await?;
            stream.write_u16(length).await?;
        }
        _ => {
            stream.write_u8(127).await?;
            stream
                .write_u64(u64::try_from(payload.len()).unwrap_or(u64::MAX))
                .await?;
        }
    }
    stream.write_all(payload).await?;
    stream.flush().await
}

async fn close<S: AsyncWrite + Unpin>(stream: &mut S, payload: &[u8]) -> io::Result<()> {
    write(stream, true, CLOSE, payload).await?;
    stream.shutdown().await
}
