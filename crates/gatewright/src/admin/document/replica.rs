//! A replica, as `/status` shows it.

use std::net::IpAddr;

use gatewright_ir::{ListenerState, Text};
use gatewright_world::Replica;
use serde::{Deserialize, Serialize};

/// One of the replicas that plan and serve alike.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicaSummary {
    pub(crate) name: String,
    pub(crate) addresses: Vec<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    pub(crate) is_leaving: bool,
    /// How many listeners it serves.
    pub(crate) listening: usize,
    /// How many it could not open.
    pub(crate) failed: usize,
}

impl From<(&Text, &Replica)> for ReplicaSummary {
    fn from((name, replica): (&Text, &Replica)) -> Self {
        let is_listening = |state: &ListenerState| matches!(state, ListenerState::Listening(_));
        let listening = replica.facts.values().filter(|fact| is_listening(&fact.state)).count();
        Self {
            name: name.to_string(),
            addresses: replica.addresses.clone(),
            node: replica.node.as_ref().map(Text::to_string),
            is_leaving: replica.is_leaving,
            listening,
            failed: replica.facts.len() - listening,
        }
    }
}
