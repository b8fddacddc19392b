//! The settings of a Gateway: its class's GatewayConfig, overridden by its own where the class allows.

use std::{borrow::Cow, net::IpAddr, sync::Arc};

use gatewright_api::Kind;
use gatewright_ir::HttpSettings;
use gatewright_world::{
    Key, World,
    object::{Config, ConfigSection, Gateway},
    resolve::{Granted, Referrer},
};

use crate::{PlanSettings, class::resolve_config};

/// The settings of one Gateway.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) http: Arc<HttpSettings>,
    pub(super) pool: Vec<IpAddr>,
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
    let mut merged = Settings {
        http: Arc::default(),
        pool: settings.host_addresses.clone(),
        trouble: None,
    };
    let mut http = HttpSettings::default();
    let class = class.and_then(|granted| world.read(granted));
    if let Some(class) = class {
        take_over(class, &mut http, &mut merged.pool);
    }
    if let Some(reference) = &gateway.parameters {
        let from = Referrer::Namespaced(Kind::Gateway, &key.namespace);
        let (granted, trouble) = resolve_config(world, from, reference, Some(&key.namespace))?;
        merged.trouble = trouble;
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
                        merged.trouble = Some(message.into());
                    }
                    allowed
                }
            };
            take_over(&own, &mut http, &mut merged.pool);
        }
    }
    if merged.pool.is_empty() {
        merged.pool.clone_from(&settings.host_addresses);
    }
    merged.http = Arc::new(http);
    Ok(merged)
}

fn take_over(config: &Config, http: &mut HttpSettings, pool: &mut Vec<IpAddr>) {
    // What is wrong in it has been refused when it arrived.
    config.settings(http, &mut Vec::new());
    if let Some(addresses) = &config.addresses {
        *pool = addresses.to_vec();
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
        own.entry.is_some() || own.addresses.is_some(),
        "entry",
    ) {
        allowed.entry = None;
        allowed.addresses = None;
    }
    if check(ConfigSection::Http, own.http.is_some(), "http") {
        allowed.http = None;
    }
    if check(ConfigSection::Upstream, own.upstream.is_some(), "upstream") {
        allowed.upstream = None;
    }
    (allowed, refused)
}
