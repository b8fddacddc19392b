//! Which of the host's addresses a datagram was sent to, as the kernel tells it beside the datagram, and how an answer is
//! told to come from there.
//!
//! The layout is that of `struct cmsghdr` and of `in_pktinfo` and `in6_pktinfo` in Linux, whose parts are in native order.

use std::{
    mem::size_of,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Room for what the kernel tells.
pub(super) const ROOM: usize = 64;

/// An address of this host, and for addresses that need it, the interface that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Local {
    pub(super) address: IpAddr,
    pub(super) interface: u32,
}

const WORD: usize = size_of::<usize>();
const HEADER: usize = WORD + 2 * size_of::<libc::c_int>();

/// Reads what the kernel told.
pub(super) fn read(mut bytes: &[u8]) -> Option<Local> {
    loop {
        let (length, rest) = bytes.split_first_chunk::<WORD>()?;
        let (level, rest) = number(rest)?;
        let (kind, _) = number(rest)?;
        let length = usize::from_ne_bytes(*length);
        let content = bytes.get(HEADER..length)?;
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // The interface, the address to answer from, and the one in the datagram.
                let (_, rest) = number(content)?;
                let (address, _) = rest.split_first_chunk::<4>()?;
                return Some(Local {
                    address: Ipv4Addr::from(*address).into(),
                    interface: 0,
                });
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let (address, rest) = content.split_first_chunk::<16>()?;
                let (interface, _) = rest.split_first_chunk::<4>()?;
                let address = Ipv6Addr::from(*address);
                return Some(Local {
                    address: address.into(),
                    // Elsewhere the routing table knows better which way to go.
                    interface: if address.is_unicast_link_local() {
                        u32::from_ne_bytes(*interface)
                    } else {
                        0
                    },
                });
            }
            _ => bytes = bytes.get(length.next_multiple_of(WORD)..)?,
        }
    }
}

/// Writes what the kernel is to be told.
pub(super) fn write(local: Local) -> Vec<u8> {
    let mut content = Vec::with_capacity(32);
    let (level, kind) = match local.address {
        IpAddr::V4(address) => {
            content.extend(0_u32.to_ne_bytes());
            content.extend(address.octets());
            content.extend([0; 4]);
            (libc::IPPROTO_IP, libc::IP_PKTINFO)
        }
        IpAddr::V6(address) => {
            content.extend(address.octets());
            content.extend(local.interface.to_ne_bytes());
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO)
        }
    };
    let mut bytes = Vec::with_capacity(ROOM);
    bytes.extend((HEADER + content.len()).to_ne_bytes());
    bytes.extend(level.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.append(&mut content);
    bytes.resize(bytes.len().next_multiple_of(WORD), 0);
    bytes
}

fn number(bytes: &[u8]) -> Option<(libc::c_int, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((libc::c_int::from_ne_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::{Local, read, write};

    #[test]
    fn what_is_written_is_read_again() {
        for address in ["192.0.2.7", "2001:db8::7"] {
            let local = Local {
                address: address.parse().unwrap(),
                interface: 0,
            };
            assert_eq!(read(&write(local)), Some(local));
        }
        let local = Local {
            address: "fe80::7".parse().unwrap(),
            interface: 3,
        };
        assert_eq!(read(&write(local)), Some(local));
    }

    #[test]
    fn half_of_it_says_nothing() {
        let bytes = write(Local {
            address: "192.0.2.7".parse().unwrap(),
            interface: 0,
        });
        for length in 0..24 {
            assert_eq!(read(&bytes[..length]), None, "{length}");
        }
        assert_eq!(read(&[0; 64]), None);
    }
}
