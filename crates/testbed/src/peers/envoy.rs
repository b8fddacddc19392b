//! Envoy's configuration.

use std::{net::SocketAddrV4, path::Path, process::Command};

use serde_json::{Value, json};

use super::HOST;

/// A reverse proxy.
#[derive(Clone, Copy, Debug)]
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddrV4,
    /// Where requests go.
    pub backend: SocketAddrV4,
}

impl Proxy {
    /// The bootstrap file. Request ids are off because no other proxy of the comparison makes any.
    pub fn render(&self) -> anyhow::Result<String> {
        let router = json!({
            "name": "envoy.filters.http.router",
            "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
        });
        let manager = json!({
            "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "front",
            "generate_request_id": false,
            "use_remote_address": true,
            "route_config": {"virtual_hosts": [{
                "name": "bench",
                "domains": [HOST],
                "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "back", "append_x_forwarded_host": true}}],
            }]},
            "http_filters": [router],
        });
        let filter = json!({"name": "envoy.filters.network.http_connection_manager", "typed_config": manager});
        let endpoint = json!({"endpoint": {"address": socket(self.backend)}});
        let cluster = json!({
            "name": "back",
            "type": "STATIC",
            "connect_timeout": "5s",
            "load_assignment": {"cluster_name": "back", "endpoints": [{"lb_endpoints": [endpoint]}]},
        });
        let listener = json!({"address": socket(self.address), "filter_chains": [{"filters": [filter]}]});
        let bootstrap = json!({"static_resources": {"listeners": [listener], "clusters": [cluster]}});
        Ok(serde_json::to_string_pretty(&bootstrap)?)
    }
}

fn socket(address: SocketAddrV4) -> Value {
    json!({"socket_address": {"address": address.ip().to_string(), "port_value": address.port()}})
}

/// The command that serves a bootstrap file with one worker.
pub fn command(program: &Path, file: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args([
            "--concurrency",
            "1",
            "--log-level",
            "error",
            "--disable-hot-restart",
            "--config-path",
        ])
        .arg(file);
    command
}
