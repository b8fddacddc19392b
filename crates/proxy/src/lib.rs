//! The embedded data plane: makes traffic follow the IR, and reports facts back.
//!
//! [`Proxy`] is the whole interface: gateways go in through [`Proxy::apply`], facts come out of the channel that
//! [`Proxy::start`] returns, and [`Metrics`] are numbers with labels. Traffic is carried by threads that share nothing but
//! the routing tables; see `worker`. Nothing in this crate knows Kubernetes or where the IR comes from.

mod datagram;
mod dns;
mod forward;
mod h1;
mod h2;
mod hygiene;
mod matching;
mod metrics;
mod normalise;
mod proxy;
mod proxy_header;
mod query;
mod redirect;
mod session;
mod stream;
mod tls;
mod upstream;
mod worker;

pub use metrics::{
    AnswerCount, BindConnections, Histogram, ListenerTraffic, Metrics, RequestCount, StreamTraffic, TlsFailureCount,
    UpstreamCounts,
};
pub use proxy::{Proxy, ProxyError, ProxySettings};
