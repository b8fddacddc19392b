//! The PROXY protocol: who a client is, said before its first byte by whoever hands its connection on.
//!
//! `worker` reads it from the fronts that are trusted, and from nobody else; `stream` writes it for backends that want it.
//! Both versions are read, whichever comes. What a version 2 header says beside the addresses is passed over.

mod read;
mod write;

pub(crate) use read::{Introduced, read};
pub(crate) use write::write;

#[cfg(test)]
mod tests;

/// What every header of version 2 begins with.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
