//! Ten thousand paths on one host, the case that a list of routes is slowest at.

use std::net::SocketAddrV4;

use gatewright_api::Object;

use super::{INFRA, endpoint_slice, http_route, match_path, service};

/// Matches per rule and rules per route. Gateway API allows 64 and 16, and 128 matches in a route.
const MATCHES: usize = 10;
const RULES: usize = 10;

/// How a path is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// To the letter.
    Exact,
    /// By whole leading segments.
    Prefix,
}

/// The path with this number. All are equally long, so that only their order could make one dearer than another.
pub fn path(index: usize) -> String {
    format!("/shop/item-{index:05}")
}

/// Routes that share one host and together have so many paths, all to one backend.
pub fn paths(kind: PathKind, host: &str, count: usize, backend: SocketAddrV4) -> Vec<Object> {
    let numbers: Vec<usize> = (0..count).collect();
    let mut objects = Vec::new();
    for (position, numbers) in numbers.chunks(MATCHES * RULES).enumerate() {
        // The number has a fixed width because equal matches are ordered by name.
        let name = format!("part-{position:04}");
        let rules = numbers.chunks(MATCHES).map(|numbers| {
            let matches = numbers.iter().map(|number| match_path(kind, &path(*number)));
            matches.collect()
        });
        objects.push(http_route(INFRA, &name, host, rules.collect()));
        objects.push(service(INFRA, &name));
        objects.push(endpoint_slice(INFRA, &name, &[backend]));
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::{PathKind, paths};

    #[test]
    fn every_path_stands_in_exactly_one_route() {
        let objects = paths(PathKind::Exact, "shop.example.com", 250, "127.0.0.1:9".parse().unwrap());
        let text = super::super::list(&objects).unwrap();
        assert_eq!(objects.len(), 9);
        assert_eq!(text.matches("\"/shop/item-").count(), 250);
        assert_eq!(text.matches("\"/shop/item-00249\"").count(), 1);
    }
}
