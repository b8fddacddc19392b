//! The settings of a Gateway: its class's GatewayConfig, overridden by its own where the class allows.

use std::{borrow::Cow, net::IpAddr, sync::Arc};

use gatewright_api::{Kind, config as types};
use gatewright_ir::ListenerSettings;
use gatewright_world::{
    Key, World,
    object::{Config, ConfigSection, Gateway},
    resolve::{Granted, Referrer},
};

use super::{Balancer, Entry};
use crate::{PlanSettings, class::resolve_config};

/// The settings of one Gateway.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) http: Arc<ListenerSettings>,
    pub(super) pool: Vec<IpAddr>,
    pub(super) entry: Entry,
    /// What could not be honoured; the rest is in force.
    pub(super) trouble: Option<Cow<'static, str>>,
}

/// Merges the settings; `Err` when the Gateway names a GatewayConfig that never was.
pub(super) fn merge(
    world: &World,
    settings: &PlanSettings,
    key: &Key,
    gateway: &Gateway,
    class: Option<&Granted<Config>>,
) -> Result<Settings, Cow<'static, str>> {
    let mut stated = Stated {
        http: ListenerSettings::default(),
        pool: settings.host_addresses.clone(),
        entry: settings.default_entry,
        balancer: Balancer::default(),
    };
    let mut trouble = None;
    let class = class.and_then(|granted| world.read(granted));
    if let Some(class) = class {
        stated.take_over(class);
    }
    if let Some(reference) = &gateway.parameters {
        let from = Referrer::Namespaced(Kind::Gateway, &key.namespace);
        let (granted, standing) = resolve_config(world, from, reference, Some(&key.namespace))?;
        trouble = standing;
        if let Some(own) = world.read(&granted) {
            let own = match class {
                // Nothing to override: the Gateway speaks for itself.
                None => own.clone(),
                Some(class) => {
                    let (allowed, refused) = allowed_part(own, class);
                    if !refused.is_empty() {
                        let message = format!(
                            "GatewayClass {} does not allow GatewayConfig {} to override {}; there the class's settings stay in force",
                            gateway.class,
                            granted.key(),
                            refused.join(", "),
                        );
                        trouble = Some(message.into());
                    }
                    allowed
                }
            };
            stated.take_over(&own);
        }
    }
    let Stated {
        http,
        mut pool,
        entry,
        balancer,
    } = stated;
    if pool.is_empty() {
        pool.clone_from(&settings.host_addresses);
    }
    let entry = match entry {
        types::Entry::Host => Entry::Host,
        types::Entry::LoadBalancer => Entry::LoadBalancer(balancer),
        types::Entry::Ssh | types::Entry::Portal => return Err("the entry is not available; use Host".into()),
    };
    Ok(Settings {
        http: Arc::new(http),
        pool,
        entry,
        trouble,
    })
}

/// What has been stated so far.
struct Stated {
    http: ListenerSettings,
    pool: Vec<IpAddr>,
    entry: types::Entry,
    balancer: Balancer,
}

impl Stated {
    fn take_over(&mut self, config: &Config) {
        let Config {
            data_plane: _,
            entry,
            addresses,
            load_balancer,
            overrides: _,
            http: _,
            tcp: _,
            udp: _,
            proxy_protocol: _,
            upstream: _,
            refusals: _,
        } = config;
        // What is wrong in it has been refused when it arrived.
        config.settings(&mut self.http, &mut Vec::new());
        self.entry = entry.unwrap_or(self.entry);
        if let Some(addresses) = addresses {
            self.pool = addresses.to_vec();
        }
        if let Some(section) = load_balancer {
            self.balancer.take_over(section);
        }
    }
}

/// What of a Gateway's own config its class allows, and the sections it does not.
fn allowed_part(own: &Config, class: &Config) -> (Config, Vec<&'static str>) {
    let mut allowed = own.clone();
    let mut refused = Vec::new();
    let mut check = |section: ConfigSection, is_stated: bool, name: &'static str| {
        let is_refused = is_stated && !class.overrides.contains(&section);
        if is_refused {
            refused.push(name);
        }
        is_refused
    };
    if check(ConfigSection::DataPlane, own.data_plane.is_some(), "dataPlane") {
        allowed.data_plane = None;
    }
    if check(
        ConfigSection::Entry,
        own.entry.is_some() || own.addresses.is_some() || own.load_balancer.is_some(),
        "entry",
    ) {
        allowed.entry = None;
        allowed.addresses = None;
        allowed.load_balancer = None;
    }
    if check(ConfigSection::Http, own.http.is_some(), "http") {
        allowed.http = None;
    }
    if check(ConfigSection::Tcp, own.tcp.is_some(), "tcp") {
        allowed.tcp = None;
    }
    if check(ConfigSection::Udp, own.udp.is_some(), "udp") {
        allowed.udp = None;
    }
    if check(
        ConfigSection::ProxyProtocol,
        own.proxy_protocol.is_some(),
        "proxyProtocol",
    ) {
        allowed.proxy_protocol = None;
    }
    if check(ConfigSection::Upstream, own.upstream.is_some(), "upstream") {
        allowed.upstream = None;
    }
    (allowed, refused)
}
