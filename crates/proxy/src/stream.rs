//! Connections that are routed as a whole: what client and backend say to each other is carried and not understood.
//!
//! `worker` accepts connections, makes or looks at the TLS handshake where there is one, and calls [`serve`]. A backend is
//! chosen for each connection, by the weights of its rule; the backend may be the first to speak. Where to is decided in
//! `route`, which datagrams use as well; `relay` moves the bytes.

mod pipes;
mod relay;
mod route;
mod serve;
mod side;

pub(crate) use pipes::Pipes;
pub(crate) use route::{Destination, Occupied};
pub(crate) use serve::{Beginning, serve};
pub(crate) use side::Side;
