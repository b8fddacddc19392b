//! The binary as its users meet it: whole outputs, and processes with real sockets.

mod admin;
mod check;
mod demo;
mod endings;
mod probes;
mod process;
mod reload;
mod status;
mod usage;
mod web;
mod yaml;
