//! GatewayConfig, reduced to IR settings.

use std::{net::IpAddr, time::Duration};

use gatewright_api::{self as api, config as types};
use gatewright_ir::{ListenerSettings, Network, ProxyHeader};

use super::{Refusal, parse_duration};

/// A GatewayConfig. Sections that were left out are `None`, so that a Gateway's own config overrides only what it states.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Which data plane.
    pub data_plane: Option<types::DataPlane>,
    /// Which way in.
    pub entry: Option<types::Entry>,
    /// The pool of addresses of `entry: Host`.
    pub addresses: Option<Box<[IpAddr]>>,
    /// The `loadBalancer` section.
    pub load_balancer: Option<Box<types::LoadBalancerEntry>>,
    /// What a Gateway's own config may override.
    pub overrides: Box<[ConfigSection]>,
    /// The `http` section.
    pub http: Option<types::HttpSettings>,
    /// The `tcp` section.
    pub tcp: Option<types::TcpSettings>,
    /// The `udp` section.
    pub udp: Option<types::UdpSettings>,
    /// The `proxyProtocol` section.
    pub proxy_protocol: Option<types::ProxyProtocol>,
    /// The `upstream` section.
    pub upstream: Option<types::UpstreamSettings>,
    /// Fields that cannot be honoured.
    pub refusals: Box<[Refusal]>,
}

/// A part that a Gateway may be allowed to override.
pub type ConfigSection = types::Section;

impl Config {
    /// Without a cluster nobody makes Services, and `entry: LoadBalancer` cannot be honoured.
    pub(crate) fn reduce(config: &api::GatewayConfig, has_cluster: bool) -> Self {
        let mut refusals = Vec::new();
        let types::GatewayConfigSpec {
            data_plane,
            entry,
            allowed_overrides,
            host,
            load_balancer,
            http,
            tcp,
            udp,
            proxy_protocol,
            upstream,
        } = &config.spec;
        if let Some(plane @ (types::DataPlane::Envoy | types::DataPlane::Agentgateway)) = data_plane {
            let message = format!("dataPlane {plane:?} is not available; use Builtin");
            refusals.push(Refusal::unsupported("spec.dataPlane", message));
        }
        let refused = match entry {
            None | Some(types::Entry::Host) => None,
            Some(types::Entry::LoadBalancer) if has_cluster => None,
            Some(types::Entry::LoadBalancer) => Some("entry LoadBalancer needs a cluster; use Host"),
            Some(types::Entry::Ssh) => Some("entry SSH is not available; use Host"),
            Some(types::Entry::Portal) => Some("entry Portal is not available; use Host"),
        };
        if let Some(message) = refused {
            refusals.push(Refusal::unsupported("spec.entry", message));
        }
        let annotations = load_balancer.as_ref().and_then(|section| section.annotations.as_ref());
        for key in annotations.into_iter().flat_map(|annotations| annotations.keys()) {
            if !is_qualified_name(key) {
                let message = format!("{key:?} is not an annotation key");
                refusals.push(Refusal::invalid("spec.loadBalancer.annotations", message));
            }
        }
        let class = load_balancer
            .as_ref()
            .and_then(|section| section.load_balancer_class.as_ref());
        if let Some(class) = class.filter(|class| !is_qualified_name(class)) {
            let message = format!("{class:?} is not the name of a class; write for example example.com/internal");
            refusals.push(Refusal::invalid("spec.loadBalancer.loadBalancerClass", message));
        }
        let mut addresses = Vec::new();
        let declared = host.as_ref().and_then(|host| host.addresses.as_ref());
        for (index, address) in declared.into_iter().flatten().enumerate() {
            if let Ok(address) = address.parse() {
                addresses.push(address);
            } else {
                let field = format!("spec.host.addresses[{index}]");
                refusals.push(Refusal::invalid(field, format!("{address:?} is not an IP address")));
            }
        }
        let mut reduced = Self {
            data_plane: *data_plane,
            entry: *entry,
            addresses: declared.map(|_| addresses.into()),
            load_balancer: load_balancer.clone().map(Box::new),
            overrides: allowed_overrides.clone().unwrap_or_default().into(),
            http: http.clone(),
            tcp: tcp.clone(),
            udp: udp.clone(),
            proxy_protocol: proxy_protocol.clone(),
            upstream: upstream.clone(),
            refusals: Box::new([]),
        };
        // Reading the settings once finds what is wrong in them; the planner reads them again when it merges.
        reduced.settings(&mut ListenerSettings::default(), &mut refusals);
        reduced.refusals = refusals.into();
        reduced
    }

    /// Writes what this config states into `settings`; what is wrong goes to `refusals` and leaves the setting as it was.
    pub fn settings(&self, settings: &mut ListenerSettings, refusals: &mut Vec<Refusal>) {
        if let Some(http) = &self.http {
            apply_http(http, settings, refusals);
        }
        if let Some(types::TcpSettings { idle_timeout }) = &self.tcp {
            let into = &mut settings.stream_idle_timeout;
            duration(idle_timeout.as_ref(), "spec.tcp.idleTimeout", into, refusals);
        }
        if let Some(types::UdpSettings { idle_timeout }) = &self.udp {
            let into = &mut settings.datagram_idle_timeout;
            duration(idle_timeout.as_ref(), "spec.udp.idleTimeout", into, refusals);
        }
        if let Some(types::ProxyProtocol { accept_from, send }) = &self.proxy_protocol {
            if let Some(declared) = accept_from {
                settings.proxy_fronts = networks(declared, "spec.proxyProtocol.acceptFrom", refusals);
            }
            if let Some(send) = send {
                settings.proxy_header = match send {
                    types::SentHeader::None => None,
                    types::SentHeader::V1 => Some(ProxyHeader::V1),
                    types::SentHeader::V2 => Some(ProxyHeader::V2),
                };
            }
        }
        if let Some(types::UpstreamSettings {
            connect_timeout,
            idle_timeout,
            max_idle,
        }) = &self.upstream
        {
            let upstream = &mut settings.upstream;
            duration(
                connect_timeout.as_ref(),
                "spec.upstream.connectTimeout",
                &mut upstream.connect_timeout,
                refusals,
            );
            duration(
                idle_timeout.as_ref(),
                "spec.upstream.idleTimeout",
                &mut upstream.idle_timeout,
                refusals,
            );
            upstream.max_idle = max_idle.unwrap_or(upstream.max_idle);
        }
    }
}

/// Whether Kubernetes takes this as the key of an annotation and the like: an optional domain and a slash, and a name.
fn is_qualified_name(key: &str) -> bool {
    let (domain, name) = match key.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, key),
    };
    let is_word = |text: &str, longest: usize, inner: &str| {
        let is_end = |character: Option<char>| character.is_some_and(|character| character.is_ascii_alphanumeric());
        text.len() <= longest
            && is_end(text.chars().next())
            && is_end(text.chars().next_back())
            && text
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || inner.contains(character))
    };
    let is_domain = |domain: &str| domain.len() <= 253 && domain.split('.').all(|label| is_word(label, 253, "-"));
    is_word(name, 63, "-_.") && domain.is_none_or(is_domain)
}

fn apply_http(http: &types::HttpSettings, settings: &mut ListenerSettings, refusals: &mut Vec<Refusal>) {
    let types::HttpSettings {
        escaped_slashes,
        underscores_in_headers,
        trusted_proxies,
        max_header_bytes,
        header_timeout,
        idle_timeout,
        drain_timeout,
        body_timeout,
        max_connections,
        max_streams,
        max_hasty_resets,
    } = http;
    if let Some(choice) = escaped_slashes {
        settings.keep_escaped_slashes = *choice == types::EscapedSlashes::Keep;
    }
    if let Some(choice) = underscores_in_headers {
        settings.allow_underscores = *choice == types::Underscores::Allow;
    }
    if let Some(declared) = trusted_proxies {
        settings.trusted_proxies = networks(declared, "spec.http.trustedProxies", refusals);
    }
    settings.max_header_bytes = max_header_bytes
        .unwrap_or(settings.max_header_bytes)
        .clamp(1024, 1 << 20);
    settings.max_connections = max_connections.unwrap_or(settings.max_connections).max(1);
    settings.max_streams = max_streams.unwrap_or(settings.max_streams).clamp(1, 10_000);
    settings.max_hasty_resets = max_hasty_resets.unwrap_or(settings.max_hasty_resets).max(1);
    duration(
        header_timeout.as_ref(),
        "spec.http.headerTimeout",
        &mut settings.header_timeout,
        refusals,
    );
    duration(
        idle_timeout.as_ref(),
        "spec.http.idleTimeout",
        &mut settings.idle_timeout,
        refusals,
    );
    // Not to wait at all is a way to drain; the other times would end everything before it began.
    if drain_timeout.as_deref().and_then(parse_duration) == Some(Duration::ZERO) {
        settings.drain_timeout = Duration::ZERO;
    } else {
        duration(
            drain_timeout.as_ref(),
            "spec.http.drainTimeout",
            &mut settings.drain_timeout,
            refusals,
        );
    }
    duration(
        body_timeout.as_ref(),
        "spec.http.bodyTimeout",
        &mut settings.body_timeout,
        refusals,
    );
}

/// The networks of a list that are some.
fn networks(declared: &[String], field: &'static str, refusals: &mut Vec<Refusal>) -> Vec<Network> {
    let mut networks = Vec::with_capacity(declared.len());
    for (index, network) in declared.iter().enumerate() {
        match network.parse::<Network>() {
            Ok(network) => networks.push(network),
            Err(error) => {
                let field = format!("{field}[{index}]");
                refusals.push(Refusal::invalid(field, format!("{network:?} {error}")));
            }
        }
    }
    networks
}

fn duration(text: Option<&String>, field: &'static str, into: &mut Duration, refusals: &mut Vec<Refusal>) {
    let Some(text) = text else { return };
    match parse_duration(text) {
        Some(duration) if !duration.is_zero() => *into = duration,
        _ => {
            let message = format!("{text:?} is no duration above zero; write for example 10s or 500ms");
            refusals.push(Refusal::invalid(field, message));
        }
    }
}

#[cfg(test)]
mod tests;
