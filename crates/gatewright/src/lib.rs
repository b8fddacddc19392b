//! The binary's library.
