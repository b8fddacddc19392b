//! What a source says about one declared object.
//!
//! Every source yields these; whoever owns the world takes them in.

use gatewright_api::{Object, ObjectName};

/// One declared object has changed.
#[derive(Clone, Debug)]
pub enum Change {
    /// The object is new or differs from the one applied before.
    Apply(Box<Object>),
    /// The object is no longer declared.
    Delete(ObjectName),
    /// The object is declared and cannot be read: the API server knows a field or value that we do not.
    ///
    /// What was known under this name no longer holds. Its deletion comes as any other. A folder never yields this: what
    /// cannot be read there is a problem of the file.
    Invalid {
        /// Which object.
        name: ObjectName,
        /// The object reduced to what its status needs: metadata and whose it is.
        salvaged: Option<Box<Object>>,
        /// What cannot be read, in one sentence.
        error: String,
    },
}
