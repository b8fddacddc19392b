//! What carries traffic, and networks in CIDR form for trusted proxies and allow lists.

use std::{fmt, net::IpAddr, str::FromStr};

use serde::{Serialize, Serializer};

/// What carries traffic. Port 53 of the one is another port than port 53 of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Transport {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// A port of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Port {
    /// The number.
    pub number: u16,
    /// The transport.
    pub transport: Transport,
}

impl Port {
    /// A port of TCP.
    pub fn tcp(number: u16) -> Self {
        Self {
            number,
            transport: Transport::Tcp,
        }
    }

    /// A port of UDP.
    pub fn udp(number: u16) -> Self {
        Self {
            number,
            transport: Transport::Udp,
        }
    }
}

impl Transport {
    /// Reads the name that Kubernetes uses; without one it means TCP. None for what nothing here speaks, as SCTP.
    pub fn parse(name: Option<&str>) -> Option<Self> {
        match name {
            None | Some("TCP") => Some(Self::Tcp),
            Some("UDP") => Some(Self::Udp),
            Some(_) => None,
        }
    }

    /// The name that Kubernetes and people use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// Most ports are of TCP, and people say so only of the others.
impl fmt::Display for Port {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.transport {
            Transport::Tcp => write!(out, "{}", self.number),
            Transport::Udp => write!(out, "{}/udp", self.number),
        }
    }
}

/// All addresses that share a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// The text is not an address or a CIDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkError;

impl Network {
    /// Whether the address lies in this network. An IPv4 address mapped into IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.bits);
                (network.to_bits() ^ address.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.bits);
                (network.to_bits() ^ address.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| NetworkError)?)),
            None => (text, None),
        };
        let address = address.parse::<IpAddr>().map_err(|_| NetworkError)?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(longest);
        if bits > longest {
            Err(NetworkError)
        } else {
            Ok(Self { address, bits })
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.bits)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for NetworkError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("must be an IP address or a network such as 10.0.0.0/8")
    }
}

impl std::error::Error for NetworkError {}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn a_network_holds_the_addresses_that_share_its_prefix() {
        let holds =
            |network: &str, address: &str| network.parse::<Network>().unwrap().contains(address.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.255.0.1"));
        assert!(!holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("0.0.0.0/0", "1.2.3.4"));
        assert!(holds("127.0.0.1", "127.0.0.1"));
        assert!(holds("::/0", "fe80::1"));
        assert!(holds("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(!holds("::/0", "1.2.3.4"));
        assert!("10.0.0.0/33".parse::<Network>().is_err());
        assert!("nonsense".parse::<Network>().is_err());
    }
}
