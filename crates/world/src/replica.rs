//! One process of several that plan and serve alike: where it is, and what its plane observed.
//!
//! Each replica publishes itself as a text in an annotation of a Lease of its own; the others read it. The text is bounded,
//! because annotations are, and because whoever can write the Lease must not be able to fill the memory of the others.

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, SocketAddr},
};

use gatewright_ir::{ListenFailure, ListenerState, Origin, Text};
use serde::{Deserialize, Serialize};

/// A replica, as the others know it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replica {
    /// Where its listeners are reached, at most one of each family; empty when nobody else can reach it.
    pub addresses: Vec<IpAddr>,
    /// The node it runs on: Services that keep traffic on the node where it arrives need to know.
    pub node: Option<Text>,
    /// Whether it is about to stop.
    pub is_leaving: bool,
    /// What its plane said about each listener.
    pub facts: BTreeMap<Origin, ListenerFact>,
}

/// What a plane said about a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerFact {
    /// The generation of the Gateway that it answers to.
    pub generation: i64,
    /// The state.
    pub state: ListenerState,
}

/// A replica as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// At most [`Replica::LONGEST`] bytes.
    pub text: String,
    /// How many listeners found no room. The others take them for closed on this replica.
    pub left_out: usize,
}

/// A text that is no replica.
#[derive(Debug)]
pub enum ReplicaError {
    /// It is longer than any that is published.
    TooLong(usize),
    /// It cannot be read.
    Unreadable(serde_json::Error),
}

impl fmt::Display for ReplicaError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(bytes) => write!(out, "{bytes} bytes are more than {} bytes", Replica::LONGEST),
            Self::Unreadable(error) => write!(out, "{error}"),
        }
    }
}

impl std::error::Error for ReplicaError {}

/// The text, in short words: a cluster may have thousands of listeners.
#[derive(Serialize, Deserialize)]
struct Form {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    leaving: bool,
    #[serde(default)]
    listeners: BTreeMap<String, FactForm>,
}

#[derive(Serialize, Deserialize)]
struct FactForm {
    #[serde(rename = "g")]
    generation: i64,
    #[serde(flatten)]
    state: StateForm,
}

#[derive(Serialize, Deserialize)]
enum StateForm {
    #[serde(rename = "on")]
    Listening(Vec<SocketAddr>),
    #[serde(rename = "no")]
    Failed(SocketAddr, ListenFailure),
}

impl Replica {
    /// The longest text, in bytes. An API server takes 256 KiB of annotations on one object.
    pub const LONGEST: usize = 200 * 1024;

    /// One of which nothing is known.
    pub(crate) const fn unknown() -> Self {
        Self {
            addresses: Vec::new(),
            node: None,
            is_leaving: false,
            facts: BTreeMap::new(),
        }
    }

    /// The replica as text.
    pub fn encode(&self) -> Encoded {
        let mut form = Form {
            addresses: self.addresses.clone(),
            node: self.node.as_deref().map(str::to_owned),
            leaving: self.is_leaving,
            listeners: BTreeMap::new(),
        };
        let mut room = Self::LONGEST.saturating_sub(size(&form));
        let mut left_out = 0;
        // Those that listen first: they say where requests can be sent.
        let is_listening = |fact: &ListenerFact| matches!(fact.state, ListenerState::Listening(_));
        let (open, closed): (Vec<_>, Vec<_>) = self.facts.iter().partition(|(_, fact)| is_listening(fact));
        for (origin, fact) in open.into_iter().chain(closed) {
            let fact = FactForm::of(fact);
            // With the colon and the comma.
            let needed = size(&origin) + size(&fact) + 2;
            match room.checked_sub(needed) {
                Some(rest) => {
                    room = rest;
                    form.listeners.insert(origin.as_str().to_owned(), fact);
                }
                None => left_out += 1,
            }
        }
        let text = serde_json::to_string(&form).unwrap_or_default();
        Encoded { text, left_out }
    }

    /// Reads what a replica published.
    pub fn decode(text: &str) -> Result<Self, ReplicaError> {
        if text.len() > Self::LONGEST {
            return Err(ReplicaError::TooLong(text.len()));
        }
        let Form {
            addresses,
            node,
            leaving,
            listeners,
        } = serde_json::from_str(text).map_err(ReplicaError::Unreadable)?;
        let facts = listeners.into_iter().map(|(origin, fact)| {
            let FactForm { generation, state } = fact;
            let state = match state {
                StateForm::Listening(addresses) => ListenerState::Listening(addresses),
                StateForm::Failed(address, failure) => ListenerState::Failed { address, failure },
            };
            (Origin::new(origin), ListenerFact { generation, state })
        });
        Ok(Self {
            addresses,
            node: node.map(Text::from),
            is_leaving: leaving,
            facts: facts.collect(),
        })
    }
}

impl FactForm {
    fn of(fact: &ListenerFact) -> Self {
        Self {
            generation: fact.generation,
            state: match &fact.state {
                ListenerState::Listening(addresses) => StateForm::Listening(addresses.clone()),
                ListenerState::Failed { address, failure } => StateForm::Failed(*address, failure.clone()),
            },
        }
    }
}

fn size(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests;
