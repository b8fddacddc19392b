//! Where declared objects come from, and where what they should show goes.
//!
//! [`files`] reads a folder of YAML and follows its changes; [`kube`] follows a cluster, writes status and owned objects
//! back, and elects the replica that writes. A source yields [`Change`]s and knows nothing of the world that takes them, of
//! plans or of data planes.

mod change;
pub mod files;
pub mod kube;

pub use change::Change;
