//! Writes a header.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use gatewright_ir::ProxyHeader;

use super::{Introduced, SIGNATURE};

/// The header that introduces a client.
pub(crate) fn write(version: ProxyHeader, introduced: Introduced) -> Vec<u8> {
    let Introduced { client, local } = introduced;
    // An IPv4 address within an IPv6 one is still the former.
    let (from, to) = (client.ip().to_canonical(), local.ip().to_canonical());
    match version {
        ProxyHeader::V1 => line(from, to, client.port(), local.port()).into_bytes(),
        ProxyHeader::V2 => binary(SocketAddr::new(from, client.port()), SocketAddr::new(to, local.port())),
    }
}

fn line(from: IpAddr, to: IpAddr, from_port: u16, to_port: u16) -> String {
    let family = match (from, to) {
        (IpAddr::V4(_), IpAddr::V4(_)) => "TCP4",
        (IpAddr::V6(_), IpAddr::V6(_)) => "TCP6",
        // There is no way to say it.
        _ => return "PROXY UNKNOWN\r\n".to_owned(),
    };
    format!("PROXY {family} {from} {to} {from_port} {to_port}\r\n")
}

fn binary(client: SocketAddr, local: SocketAddr) -> Vec<u8> {
    let mut header = Vec::with_capacity(52);
    header.extend(SIGNATURE);
    header.push(0x21);
    match (client.ip(), local.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            header.extend([0x11, 0, 12]);
            header.extend(from.octets());
            header.extend(to.octets());
        }
        (from, to) => {
            header.extend([0x21, 0, 36]);
            header.extend(wide(from).octets());
            header.extend(wide(to).octets());
        }
    }
    header.extend(client.port().to_be_bytes());
    header.extend(local.port().to_be_bytes());
    header
}

fn wide(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}
