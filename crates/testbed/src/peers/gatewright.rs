//! Ours: a folder of declared objects and the program that serves it.

pub mod connections;

use std::{net::SocketAddrV4, path::Path, process::Command};

use gatewright_api::Object;

use super::{HOST, write};
use crate::worlds::{self, INFRA, PathKind};

/// A Gateway on this address and a route to the backend.
pub fn objects(address: SocketAddrV4, backend: SocketAddrV4) -> Vec<Object> {
    let mut objects = worlds::frame(address.port());
    let rules = vec![vec![worlds::match_path(PathKind::Prefix, "/")]];
    objects.push(worlds::http_route(INFRA, "bench", HOST, rules));
    objects.push(worlds::service(INFRA, "bench"));
    objects.push(worlds::endpoint_slice(INFRA, "bench", &[backend]));
    objects
}

/// The command that serves objects from a folder, on loopback and with one worker.
pub fn command(program: &Path, objects: &[Object], folder: &Path) -> anyhow::Result<Command> {
    command_of(program, &worlds::list(objects)?, folder)
}

/// The command that serves a list of objects, as text, from a folder, on loopback and with one worker.
pub fn command_of(program: &Path, objects: &str, folder: &Path) -> anyhow::Result<Command> {
    write(folder, "objects.json", objects)?;
    Ok(serve(program, folder))
}

/// The command that serves a folder, on loopback and with one worker.
pub fn serve(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("run").arg("--files").arg(folder);
    command.args(["--host-address", "127.0.0.1", "--workers", "1", "--log-level", "warn"]);
    // Several may run at once on a machine; nobody asks these for anything.
    command.args([
        "--admin",
        "off",
        "--health-probe-bind-address",
        "off",
        "--metrics-bind-address",
        "off",
    ]);
    command
}
