//! Everything the binary does: its commands, the wiring of sources, planner and proxy, the admin API and the metrics.
//!
//! [`parse_and_run`] is the only door. The commands are `run`, `check`, `status`, `demo` and `echo`, each in a module of
//! that name; [`app`] joins folder, spine and proxy for those that serve. This crate alone prints, in [`ui`].

mod addresses;
mod admin;
mod advice;
mod app;
mod board;
mod check;
mod cli;
mod cluster;
mod crds;
mod demo;
mod diagnose;
mod docs;
mod durations;
mod echo;
mod failure;
mod finding;
mod logs;
mod metrics;
mod probes;
mod readiness;
mod remedy;
mod run;
mod signals;
mod spine;
mod status;
mod ui;
mod uninstall;
mod view;

pub use cli::parse_and_run;
