//! The embedded data plane
