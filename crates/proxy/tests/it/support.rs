//! What the black-box tests share: a builder of gateways, a running proxy, backends that record what they received, and
//! clients that send exactly the bytes they are told to.

pub(crate) mod backend;
pub(crate) mod client;
pub(crate) mod gateway;
pub(crate) mod http2;
pub(crate) mod message;
pub(crate) mod pki;
pub(crate) mod plain;
pub(crate) mod running;
pub(crate) mod tls;
pub(crate) mod wait;

pub(crate) use backend::{Backend, Recorded};
pub(crate) use client::Client;
pub(crate) use gateway::{Plan, exact, prefix, rule, to};
pub(crate) use running::Running;
pub(crate) use wait::{soon, until};
