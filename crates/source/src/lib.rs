//! Where declared objects come from.
//!
//! [`files`] reads a folder of YAML and follows its changes. A source yields [`Change`](files::Change)s and knows
//! nothing of the world that takes them, of plans or of data planes.

pub mod files;
