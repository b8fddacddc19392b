//! What is measured: the plan, the proxy beside its peers with requests and with connections, and a whole cluster.

pub mod apply;
pub mod connections;
pub mod kube;
pub mod plan;
pub mod proxy;

use std::time::Duration;

/// How thoroughly to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rounds in which everything that is compared takes its turn.
    pub rounds: usize,
    /// Whether to measure only as much as shows that everything works.
    pub is_quick: bool,
}

impl Effort {
    /// How long one turn of one proxy lasts.
    fn window(self) -> Duration {
        Duration::from_secs(if self.is_quick { 1 } else { 4 })
    }
}
