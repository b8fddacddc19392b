//! Datagrams. Those of one client go to one backend, and what the backend answers goes to that client, until neither has
//! sent anything for a while.
//!
//! `worker` calls [`run`] with each worker's own socket; the kernel gives a client's datagrams to the same one each time, so
//! that flows are shared with nobody. Backends are chosen as for connections, in `stream`.

mod ancillary;
mod flow;
mod receive;
mod socket;

pub(crate) use receive::run;
pub(crate) use socket::prepare;
