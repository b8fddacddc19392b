//! Puts GatewayConfigs into the world: the last good one stays in force while someone refers to it.

use gatewright_api::Kind;

use super::{HeldConfig, Standing, World};
use crate::{
    Key,
    object::{Config, Gateway, ParametersRef},
};

impl World {
    pub(super) fn put_config(&mut self, key: Key, declared: Config) {
        let standing = declared.refusals.first().cloned();
        let standing = standing.map_or(Standing::InForce, Standing::Refused);
        let known = self.configs.remove(&key);
        let (is_known, config) = match known {
            // What cannot be honoured never replaces what could.
            Some(held) if standing != Standing::InForce && held.config.refusals.is_empty() => {
                (held.standing == standing, held.config)
            }
            known => {
                let is_known = known.is_some_and(|held| held.config == declared && held.standing == standing);
                (is_known, declared)
            }
        };
        self.configs.insert(key.clone(), HeldConfig { config, standing });
        if !is_known {
            self.changes.configs.insert(key);
        }
    }

    /// Lets go of a deleted GatewayConfig that nobody refers to, or that never was good.
    pub(super) fn drop_unused_config(&mut self, key: &Key) {
        let is_used =
            self.index.config_classes.get(key).next().is_some() || self.index.config_gateways.get(key).next().is_some();
        let is_idle =
            |held: &HeldConfig| held.standing == Standing::Gone && !(is_used && held.config.refusals.is_empty());
        if self.configs.get(key).is_some_and(is_idle) {
            self.configs.remove(key);
        }
    }
}

/// The GatewayConfig that a class's reference names, if it names one.
pub(super) fn config_key(reference: &ParametersRef) -> Option<Key> {
    let is_config =
        *reference.group == *Kind::GatewayConfig.group() && *reference.kind == *Kind::GatewayConfig.as_str();
    let namespace = reference.namespace.clone().filter(|_| is_config)?;
    Some(Key {
        namespace,
        name: reference.name.clone(),
    })
}

pub(super) fn own_config(key: &Key, gateway: &Gateway) -> Option<Key> {
    let mut reference = gateway.parameters.clone()?;
    reference.namespace = Some(key.namespace.clone());
    config_key(&reference)
}
