//! The files source against real folders.

#[cfg(test)]
mod folder;
#[cfg(test)]
mod loader;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod watch;
