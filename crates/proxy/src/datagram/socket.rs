//! The socket of a listener for datagrams: who sent a datagram, and to which of the host's addresses.
//!
//! A socket that is bound to every address must answer from the one that was asked, or clients do not recognise the
//! answer. The standard library cannot ask the kernel for that address, so this file holds the two calls that can.

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    net::SocketAddr,
    os::fd::AsRawFd,
    task::{Context, Poll, ready},
};

use socket2::{MaybeUninitSlice, MsgHdr, MsgHdrMut, SockAddr, SockRef, Socket};
use tokio::{io::Interest, net::UdpSocket};

use super::ancillary::{self, Local};

/// The largest datagram there is.
pub(super) const LONGEST: usize = 65_535;

/// Who sent a datagram, and to which address. Two clients can be told apart by these alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sender {
    pub(super) client: SocketAddr,
    /// Known where the socket is bound to every address.
    pub(super) local: Option<Local>,
}

/// Makes the kernel tell which address each datagram was sent to, if it could be several.
pub(crate) fn prepare(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    if !address.ip().is_unspecified() {
        return Ok(());
    }
    let (level, name) = if address.is_ipv4() {
        (libc::IPPROTO_IP, libc::IP_PKTINFO)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO)
    };
    switch_on(socket, level, name)
}

#[expect(unsafe_code, reason = "no safe interface to this option")]
fn switch_on(socket: &Socket, level: libc::c_int, name: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    let length = libc::socklen_t::try_from(size_of_val(&on)).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open as long as `socket` lives, and the kernel reads `length` bytes of `on`, which lives
    // until the call returns.
    let outcome = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(&on).cast(), length) };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Receives one datagram on a socket that is bound to an address.
pub(super) fn poll_receive(
    socket: &UdpSocket,
    bound: SocketAddr,
    context: &mut Context<'_>,
    buffer: &mut [u8],
) -> Poll<io::Result<(usize, Sender)>> {
    loop {
        ready!(socket.poll_recv_ready(context))?;
        match socket.try_io(Interest::READABLE, || receive(socket, bound, buffer)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            outcome => return Poll::Ready(outcome),
        }
    }
}

fn receive(socket: &UdpSocket, bound: SocketAddr, buffer: &mut [u8]) -> io::Result<(usize, Sender)> {
    let mut control = [0; ancillary::ROOM];
    // Of the right family, so that there is room for what the kernel writes.
    let mut from = SockAddr::from(bound);
    let mut buffers = [MaybeUninitSlice::new(to_be_written(buffer))];
    let mut message = MsgHdrMut::new()
        .with_addr(&mut from)
        .with_buffers(&mut buffers)
        .with_control(to_be_written(&mut control));
    let length = SockRef::from(socket).recvmsg(&mut message, 0)?;
    let told = message.control_len();
    let client = from.as_socket().ok_or(io::ErrorKind::InvalidData)?;
    Ok((
        length,
        Sender {
            client,
            local: ancillary::read(control.get(..told).unwrap_or_default()),
        },
    ))
}

/// Bytes as the receiving call takes them.
#[expect(
    unsafe_code,
    reason = "the interface is made for bytes that are not initialised, and ours are"
)]
fn to_be_written(bytes: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    let bytes: *mut [u8] = bytes;
    // SAFETY: both types have the same layout. The bytes stay initialised, because the only thing that is done with the
    // result is to let the kernel write to it.
    unsafe { &mut *(bytes as *mut [MaybeUninit<u8>]) }
}

/// Sends an answer to whoever sent a datagram, from the address that was asked.
pub(super) fn answer(socket: &UdpSocket, to: Sender, control: &[u8], bytes: &[u8]) -> io::Result<usize> {
    let client = SockAddr::from(to.client);
    let buffers = [IoSlice::new(bytes)];
    let message = MsgHdr::new().with_addr(&client).with_buffers(&buffers);
    let message = if control.is_empty() {
        message
    } else {
        message.with_control(control)
    };
    SockRef::from(socket).sendmsg(&message, 0)
}

#[cfg(test)]
mod tests;
