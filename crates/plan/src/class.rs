//! GatewayClasses: which are ours, and with which settings.

use std::borrow::Cow;

use gatewright_ir::Text;
use gatewright_world::{
    ConfigStanding, World,
    desired::{ClassStatus, Condition, ConditionKind, Reason},
    object::{Config, GatewayClass, ParametersRef, Refusal},
    resolve::{Granted, Reference, Referrer, Refused},
};

use crate::{PlanSettings, features::SUPPORTED, version};

type Message = Cow<'static, str>;

/// A GatewayClass of ours.
#[derive(Clone, Debug)]
pub(crate) struct ClassPlan {
    /// Its settings, also the last good ones of a GatewayConfig that has gone bad or gone away; `Err` when there never
    /// were any.
    pub(crate) config: Result<Option<Granted<Config>>, ()>,
    /// What it shows.
    pub(crate) status: ClassStatus,
}

/// Plans a class; `None` if it belongs to another controller.
pub(crate) fn plan(world: &World, settings: &PlanSettings, class: &GatewayClass) -> Option<ClassPlan> {
    if class.controller != settings.controller_name {
        return None;
    }
    if let Some(refusal) = &class.refusal {
        let message = format!("{}: {}", refusal.field, refusal.message);
        let accepted = Condition::fails(ConditionKind::Accepted, Reason::Invalid, message);
        let status = ClassStatus {
            generation: class.meta.generation,
            conditions: [accepted].into_iter().chain(version::condition(world)).collect(),
            features: SUPPORTED,
        };
        return Some(ClassPlan {
            config: Err(()),
            status,
        });
    }
    let (config, trouble) = match &class.parameters {
        None => (Ok(None), None),
        Some(reference) => match resolve_config(world, Referrer::Cluster, reference, reference.namespace.as_ref()) {
            Ok((granted, trouble)) => (Ok(Some(granted)), trouble),
            Err(trouble) => (Err(()), Some(trouble)),
        },
    };
    let accepted = match trouble {
        None => Condition::holds(
            ConditionKind::Accepted,
            Reason::Accepted,
            "Gateways of this class are run here",
        ),
        Some(trouble) => Condition::fails(ConditionKind::Accepted, Reason::InvalidParameters, trouble),
    };
    let status = ClassStatus {
        generation: class.meta.generation,
        conditions: [accepted].into_iter().chain(version::condition(world)).collect(),
        features: SUPPORTED,
    };
    Some(ClassPlan { config, status })
}

/// Resolves a `parametersRef`. A config that is in force but not as it is declared comes with what is wrong with it.
pub(crate) fn resolve_config(
    world: &World,
    from: Referrer<'_>,
    reference: &ParametersRef,
    namespace: Option<&Text>,
) -> Result<(Granted<Config>, Option<Message>), Message> {
    let ParametersRef {
        group,
        kind,
        namespace: _,
        name,
    } = reference;
    let shown = namespace.map_or_else(|| name.to_string(), |namespace| format!("{namespace}/{name}"));
    let to = Reference {
        group,
        kind,
        namespace,
        name,
    };
    let granted = world
        .resolve::<Config>(from, to)
        .map_err(|refused| -> Cow<'static, str> {
            match refused {
                Refused::InvalidKind => {
                    format!("parametersRef names a {kind} of group {group:?}; name a GatewayConfig of gatewright.dev")
                        .into()
                }
                Refused::NotFound | Refused::NotPermitted if namespace.is_none() => {
                    "parametersRef must name the namespace of its GatewayConfig".into()
                }
                Refused::NotFound | Refused::NotPermitted => format!("GatewayConfig {shown} does not exist").into(),
            }
        })?;
    let told = |refusal: &Refusal| format!("GatewayConfig {shown}: {}: {}", refusal.field, refusal.message);
    let trouble = match world.config_standing(&granted) {
        ConfigStanding::InForce => None,
        ConfigStanding::Gone => Some(format!(
            "GatewayConfig {shown} does not exist any more; its last settings stay in force"
        )),
        ConfigStanding::Outdated(refusal) => Some(format!("{}; the last good settings stay in force", told(refusal))),
        // A Gateway must not be run by settings that nobody chose: asked to be reached through a tunnel only, it would
        // open its ports to everyone.
        ConfigStanding::Refused(refusal) => return Err(told(refusal).into()),
    };
    Ok((granted, trouble.map(Message::from)))
}
