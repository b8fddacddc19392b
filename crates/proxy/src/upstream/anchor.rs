//! A client as far as it decides about its endpoint, for Services that keep clients at their endpoints.
//!
//! By the address of the peer alone, as Kubernetes itself does it; no state is kept, so there is none to lose.

use std::net::{IpAddr, SocketAddr};

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor(u64);

impl Anchor {
    /// The client at an address.
    pub(crate) fn of(client: IpAddr) -> Self {
        Self(mix(START, client))
    }

    /// How an endpoint ranks for this client; as good as random, and the same everywhere.
    pub(super) fn rank(self, endpoint: SocketAddr) -> u64 {
        finish(mix(self.0, endpoint.ip()) ^ u64::from(endpoint.port()))
    }
}

/// FNV-1a's: the same in every build, so that replicas of different versions agree.
const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

fn mix(state: u64, address: IpAddr) -> u64 {
    let eat = |state: u64, byte: &u8| (state ^ u64::from(*byte)).wrapping_mul(PRIME);
    match address.to_canonical() {
        IpAddr::V4(address) => address.octets().iter().fold(state, eat),
        IpAddr::V6(address) => address.octets().iter().fold(state, eat),
    }
}

/// Spreads every bit over all others: FNV leaves addresses that differ in their last byte close together.
fn finish(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, net::SocketAddr};

    use super::Anchor;

    fn endpoints(count: u8) -> Vec<SocketAddr> {
        (1..=count)
            .map(|last| SocketAddr::from(([10, 0, 0, last], 80)))
            .collect()
    }

    fn first(client: u32, endpoints: &[SocketAddr]) -> SocketAddr {
        let anchor = Anchor::of(std::net::Ipv4Addr::from(0x0a01_0000 + client).into());
        *endpoints.iter().min_by_key(|endpoint| anchor.rank(**endpoint)).unwrap()
    }

    #[test]
    fn clients_are_spread_evenly_and_a_lost_endpoint_moves_only_its_own() {
        let (ten, nine) = (endpoints(10), endpoints(9));
        let mut counts: BTreeMap<SocketAddr, u32> = BTreeMap::new();
        for client in 0..10_000 {
            let endpoint = first(client, &ten);
            *counts.entry(endpoint).or_default() += 1;
            if nine.contains(&endpoint) {
                assert_eq!(first(client, &nine), endpoint);
            }
        }
        assert!(
            counts.len() == 10 && counts.values().all(|count| (850..1_150).contains(count)),
            "{counts:?}"
        );
    }
}
