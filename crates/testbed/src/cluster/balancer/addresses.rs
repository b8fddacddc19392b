//! The pool of addresses for LoadBalancer Services.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use crate::cluster::network::Range;

/// Who has which address.
#[derive(Debug)]
pub(super) struct Pool {
    range: Range,
    given: BTreeMap<String, Ipv4Addr>,
}

impl Pool {
    pub(super) fn new(range: Range) -> Self {
        let given = BTreeMap::new();
        Self { range, given }
    }

    /// The address of a Service: the one it has, or the one it asks for, or any. Says why there is none.
    pub(super) fn give(&mut self, uid: &str, request: Option<&str>) -> Result<Ipv4Addr, String> {
        let request = request
            .map(|text| text.parse().map_err(|_| format!("{text} is no IPv4 address")))
            .transpose()?;
        if let Some(known) = self.given.get(uid)
            && request.is_none_or(|request| request == *known)
        {
            return Ok(*known);
        }
        let taken: BTreeSet<Ipv4Addr> = self.given.values().copied().collect();
        let address = match request {
            Some(request) if !self.range.contains(request) => {
                return Err(format!("{request} is not in this cluster's pool {}", self.range));
            }
            Some(request) if taken.contains(&request) => return Err(format!("{request} is another Service's")),
            Some(request) => request,
            None => {
                let free = self.range.usable().find(|address| !taken.contains(address));
                free.ok_or_else(|| format!("the pool {} is used up", self.range))?
            }
        };
        self.given.insert(uid.to_owned(), address);
        Ok(address)
    }

    /// Takes back the addresses of Services that are gone.
    pub(super) fn keep_only(&mut self, living: &BTreeSet<String>) {
        self.given.retain(|uid, _| living.contains(uid));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Pool;
    use crate::cluster::network::Range;

    #[test]
    fn everybody_gets_an_address_of_their_own_keeps_it_and_gives_it_back() {
        let mut pool = Pool::new(Range::new([10, 244, 8, 0], 21));
        let first = pool.give("a", None).unwrap();
        let second = pool.give("b", None).unwrap();
        assert_ne!(first, second);
        assert_eq!(pool.give("a", None), Ok(first));
        pool.keep_only(&BTreeSet::from(["b".to_owned()]));
        assert_eq!(pool.give("c", None), Ok(first));
    }

    #[test]
    fn a_wish_is_granted_if_the_address_is_free_and_in_the_pool() {
        let mut pool = Pool::new(Range::new([10, 244, 8, 0], 21));
        assert_eq!(pool.give("a", Some("10.244.9.9")).unwrap().to_string(), "10.244.9.9");
        assert_eq!(
            pool.give("b", Some("10.244.9.9")).unwrap_err(),
            "10.244.9.9 is another Service's"
        );
        assert!(pool.give("b", Some("10.1.1.1")).unwrap_err().contains("10.244.8.0/21"));
        assert!(pool.give("b", Some("host")).is_err());
        assert_eq!(
            pool.give("a", Some("10.244.9.10")).unwrap().to_string(),
            "10.244.9.10",
            "a wish may change"
        );
    }
}
