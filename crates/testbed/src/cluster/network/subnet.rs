//! The addresses of a cluster: one sixteenth of 10.244.0.0/16, and who has which part of it.
//!
//! A slice is free if no route of the machine overlaps it.

use std::{fmt, fs, net::Ipv4Addr};

use anyhow::Context;

/// The addresses of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cluster) struct Subnet {
    index: u8,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cluster) struct Range {
    first: u32,
    prefix_length: u8,
}

impl Range {
    /// The range that begins at an address.
    #[cfg(test)]
    pub(in crate::cluster) fn new(first: [u8; 4], prefix_length: u8) -> Self {
        let first = Ipv4Addr::from(first).to_bits();
        Self { first, prefix_length }
    }

    fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.prefix_length)).unwrap_or(0)
    }

    fn overlaps(self, other: Self) -> bool {
        let mask = self.mask() & other.mask();
        self.first & mask == other.first & mask
    }

    /// Whether an address is in it.
    pub(in crate::cluster) fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits() & self.mask() == self.first
    }

    /// The addresses that somebody can have.
    pub(in crate::cluster) fn usable(self) -> impl Iterator<Item = Ipv4Addr> {
        (self.first + 1..self.first | !self.mask()).map(Ipv4Addr::from_bits)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", Ipv4Addr::from_bits(self.first), self.prefix_length)
    }
}

impl Subnet {
    pub(in crate::cluster) const PREFIX_LENGTH: u8 = 20;

    /// The first that no route of this machine leads to.
    pub(super) fn free() -> anyhow::Result<Self> {
        // Of this thread: the process may have threads in other namespaces.
        let text = fs::read_to_string("/proc/thread-self/net/route").context("cannot read the machine's routes")?;
        let taken: Vec<Range> = text.lines().filter_map(route).collect();
        let all = (0..16).map(|index| Self { index });
        let mut free = all.filter(|subnet| !taken.iter().any(|range| range.overlaps(subnet.range())));
        free.next()
            .context("no part of 10.244.0.0/16 is free\n\nhint: `make cluster-down` removes clusters")
    }

    fn range(self) -> Range {
        Range {
            first: Ipv4Addr::new(10, 244, self.index << 4, 0).to_bits(),
            prefix_length: Self::PREFIX_LENGTH,
        }
    }

    fn at(self, offset: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.range().first + offset)
    }

    /// The machine's end of the cable to the cluster.
    pub(super) fn link(self) -> String {
        format!("gwtb{}", self.index)
    }

    /// The bridge's address on the wire: of the range that anybody may use, the rest says whose it is.
    pub(super) fn hardware_address(self) -> String {
        format!("02:67:77:74:62:{:02x}", self.index)
    }

    /// The address of the API server and of the node.
    pub(in crate::cluster) fn node(self) -> Ipv4Addr {
        self.at(1)
    }

    /// The address at which pods find programs of the machine.
    pub(in crate::cluster) fn host(self) -> Ipv4Addr {
        self.at(2)
    }

    /// The address of a pod. Numbers begin at one; after 1,790 of them addresses come round again.
    pub(super) fn pod(self, number: u32) -> Ipv4Addr {
        self.at(0x100 + 1 + (number.saturating_sub(1)) % (0x700 - 2))
    }

    /// The addresses of LoadBalancer Services.
    pub(in crate::cluster) fn balancers(self) -> Range {
        Range {
            first: self.range().first + 0x800,
            prefix_length: Self::PREFIX_LENGTH + 1,
        }
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.range().fmt(formatter)
    }
}

/// The range that a line of the kernel's table leads to; none for the way to everywhere else.
fn route(line: &str) -> Option<Range> {
    let mut fields = line.split_whitespace();
    // The kernel writes addresses as numbers in the order of this machine's bytes.
    let mut number = |index| u32::from_str_radix(fields.nth(index)?, 16).ok().map(u32::swap_bytes);
    let (first, mask) = (number(1)?, number(5)?);
    let prefix_length = u8::try_from(mask.count_ones()).ok()?;
    (mask != 0).then_some(Range { first, prefix_length })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::{Range, Subnet, route};

    #[test]
    fn routes_are_read_and_the_default_route_takes_nothing() {
        let header = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT";
        assert_eq!(route(header), None);
        assert_eq!(
            route("eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0"),
            None
        );
        let range = route("gwtb1\t0010F40A\t00000000\t0001\t0\t0\t0\t00F0FFFF\t0\t0\t0").unwrap();
        assert_eq!(range, Subnet { index: 1 }.range());
        assert_eq!(range.to_string(), "10.244.16.0/20");
    }

    #[test]
    fn a_wider_and_a_narrower_route_take_a_subnet_and_a_neighbour_does_not() {
        let range = Range::new;
        let subnet = Subnet { index: 1 }.range();
        assert!(subnet.overlaps(range([10, 0, 0, 0], 8)));
        assert!(subnet.overlaps(range([10, 244, 17, 0], 24)));
        assert!(!subnet.overlaps(range([10, 244, 32, 0], 20)));
        assert!(!subnet.overlaps(range([10, 244, 0, 0], 20)));
    }

    #[test]
    fn pods_and_balancers_never_share_an_address() {
        let subnet = Subnet { index: 15 };
        for number in 1..5000 {
            let address = subnet.pod(number);
            assert!(subnet.range().contains(address), "{address}");
            assert!(!subnet.balancers().contains(address), "{address}");
            assert!(address > subnet.host());
        }
        let pool: Vec<Ipv4Addr> = subnet.balancers().usable().collect();
        assert_eq!(pool.len(), 2046);
        assert!(pool.iter().all(|address| subnet.balancers().contains(*address)));
    }
}
