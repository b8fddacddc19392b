//! Where a piece of IR comes from, opaque to data planes.
//!
//! The planner writes an origin into every piece, a plane hands it back in a fact or uses it as a label, and only the
//! binary maps it to an object again. A plane never takes it apart.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Text;

/// An opaque name of the declared thing that a piece of IR stands for. Equal origins mean the same thing.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Origin(Text);

impl Origin {
    /// Makes an origin. Whoever calls this sees to it that different things get different texts.
    pub fn new(text: impl Into<Text>) -> Self {
        Self(text.into())
    }

    /// The text, for labels and for the one who made it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, shared.
    pub fn text(&self) -> &Text {
        &self.0
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Origin({})", self.0)
    }
}
