//! What is measured: the plan, and the proxy beside its peers.

pub mod plan;

/// How thoroughly to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rounds in which everything that is compared takes its turn.
    pub rounds: usize,
    /// Whether to measure only as much as shows that everything works.
    pub is_quick: bool,
}
