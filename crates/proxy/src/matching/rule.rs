//! What happens to a request once its entry is known, prepared so that the request path parses nothing.
//!
//! A rule whose filters cannot be carried out literally, for example a header value with a line break in it, is refused:
//! its requests are answered as if its backends did not resolve, rather than served without the filter.

use std::sync::Arc;

use gatewright_ir::{Backend, Rule, Target, Unresolved};

use super::filters::CompiledFilters;
use crate::session::CompiledSession;

/// One rule of one route.
pub(crate) struct CompiledRule {
    /// What this was compiled from: origin, name and timeouts are read there.
    pub(crate) rule: Arc<Rule>,
    /// Changes to requests and responses, if there are any.
    pub(crate) filters: Option<Box<CompiledFilters>>,
    /// How clients keep their backend, if they do.
    pub(crate) session: Option<Box<CompiledSession>>,
    /// Where requests go.
    backends: Box<[CompiledBackend]>,
}

/// One of a rule's backends.
pub(crate) struct CompiledBackend {
    /// Where its share of requests goes.
    pub(crate) target: Target,
    /// Changes to the requests and responses of this backend alone.
    pub(crate) filters: Option<Box<CompiledFilters>>,
    /// The weight of this backend and all before it.
    weight_so_far: u64,
}

impl CompiledRule {
    pub(super) fn compile(rule: &Arc<Rule>) -> Self {
        let filters = rule.filters.as_deref().map(CompiledFilters::compile);
        let session = rule.session.as_deref().map(CompiledSession::compile);
        let (filters, backends) = match filters {
            _ if matches!(session, Some(None)) => (None, Box::from([CompiledBackend::refused()])),
            Some(None) => (None, Box::from([CompiledBackend::refused()])),
            Some(Some(filters)) => (
                Some(filters).filter(|filters| !filters.is_empty()),
                compile_backends(&rule.backends),
            ),
            None => (None, compile_backends(&rule.backends)),
        };
        Self {
            rule: rule.clone(),
            filters: filters.map(Box::new),
            session: session.flatten().map(Box::new),
            backends,
        }
    }

    /// Chooses the place of a backend by weight, given any 64 random bits. Nothing stands there when no backend has a
    /// weight: the answer is 500.
    pub(crate) fn choose(&self, random: u64) -> usize {
        let total = self.backends.last().map_or(0, |last| last.weight_so_far);
        // The high half of the product is uniform over 0..total.
        let point = u64::try_from((u128::from(random) * u128::from(total)) >> 64).unwrap_or_default();
        self.backends.partition_point(|backend| backend.weight_so_far <= point)
    }

    /// The backend at a place.
    pub(crate) fn backend(&self, place: usize) -> Option<&CompiledBackend> {
        self.backends.get(place)
    }

    /// The backends that get requests, with their places.
    pub(crate) fn weighted(&self) -> impl Iterator<Item = (usize, &CompiledBackend)> {
        let mut before = 0;
        self.backends.iter().enumerate().filter(move |(_, backend)| {
            let weight = backend.weight_so_far - before;
            before = backend.weight_so_far;
            weight > 0
        })
    }
}

impl CompiledBackend {
    fn refused() -> Self {
        Self {
            target: Target::Unresolved(Unresolved::Unsupported),
            filters: None,
            weight_so_far: 1,
        }
    }
}

fn compile_backends(backends: &[Backend]) -> Box<[CompiledBackend]> {
    let mut weight_so_far = 0;
    backends
        .iter()
        .map(|backend| {
            let Backend {
                weight,
                target,
                filters,
            } = backend;
            weight_so_far += u64::from(*weight);
            let (target, filters) = match filters.as_deref().map(CompiledFilters::compile) {
                Some(None) => (Target::Unresolved(Unresolved::Unsupported), None),
                Some(Some(filters)) => (target.clone(), Some(filters).filter(|filters| !filters.is_empty())),
                None => (target.clone(), None),
            };
            CompiledBackend {
                target,
                filters: filters.map(Box::new),
                weight_so_far,
            }
        })
        .collect()
}
