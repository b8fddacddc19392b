use std::{
    io,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use tokio::io::{AsyncRead, ReadBuf};

use super::{Buffer, LARGE, SMALL, Stock};

/// A stream with endless bytes, or with none for now.
struct Source {
    is_dry: bool,
}

impl AsyncRead for Source {
    fn poll_read(self: Pin<&mut Self>, _context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_dry {
            return Poll::Pending;
        }
        let room = buffer.remaining();
        buffer.put_slice(&vec![b'x'; room]);
        Poll::Ready(Ok(()))
    }
}

fn read(buffer: &mut Buffer, stock: &Stock, is_dry: bool) -> Poll<io::Result<usize>> {
    buffer.poll_read(&mut Context::from_waker(Waker::noop()), &mut Source { is_dry }, stock)
}

#[test]
fn a_connection_that_waits_holds_no_memory() {
    let stock = Stock::default();
    let mut buffers: Vec<_> = (0..100).map(|_| Buffer::default()).collect();
    for buffer in &mut buffers {
        assert!(read(buffer, &stock, true).is_pending());
    }
    assert!(buffers.iter().all(|buffer| buffer.storage.is_empty()));
    assert_eq!(stock.small.borrow().len(), 1);
}

#[test]
fn reads_that_fill_a_buffer_make_the_next_one_larger() {
    let stock = Stock::default();
    let mut buffer = Buffer::default();
    assert!(matches!(read(&mut buffer, &stock, false), Poll::Ready(Ok(SMALL))));
    assert!(!buffer.make_room());
    buffer.consume(SMALL);
    assert!(matches!(read(&mut buffer, &stock, false), Poll::Ready(Ok(LARGE))));
    buffer.consume(LARGE);
    buffer.release(&stock);
    assert_eq!((stock.small.borrow().len(), stock.large.borrow().len()), (1, 1));
}

#[test]
fn room_is_made_within_the_limit_and_no_further() {
    let stock = Stock::default();
    let mut buffer = Buffer::default();
    assert!(read(&mut buffer, &stock, false).is_ready());
    assert!(matches!(read(&mut buffer, &stock, false), Poll::Ready(Err(_))));
    buffer.reserve(SMALL + 100);
    assert!(matches!(read(&mut buffer, &stock, false), Poll::Ready(Ok(100))));
    buffer.reserve(SMALL + 100);
    assert!(matches!(read(&mut buffer, &stock, false), Poll::Ready(Err(_))));
    // What was used up at the front is room as well.
    buffer.consume(10);
    buffer.reserve(SMALL + 100);
    assert!(matches!(read(&mut buffer, &stock, false), Poll::Ready(Ok(10))));
    assert_eq!(buffer.len(), SMALL + 100);
}
