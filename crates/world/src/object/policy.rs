//! XBackendTrafficPolicy, reduced: what it limits, and for which Services.

use std::time::Duration;

use gatewright_api::{self as api, Kind, xbackendtrafficpolicies as types};
use gatewright_ir::{RetryBudget, Text};

use super::{Meta, Refusal, http_route::read_duration};
use crate::Interner;

/// The share of requests that may be retries where the policy does not say it, in percent.
const DEFAULT_PERCENT: i64 = 20;
/// The time over which requests are counted where the policy does not say it.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(10);
/// So many retries are always allowed…
const DEFAULT_COUNT: i64 = 10;
/// …in so much time.
const DEFAULT_RATE_INTERVAL: Duration = Duration::from_secs(1);

/// An XBackendTrafficPolicy.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficPolicy {
    /// Generation and age.
    pub meta: Meta,
    /// The Services it is for, by name: they are in its own namespace.
    pub services: Box<[Text]>,
    /// How many retries they may get.
    pub budget: Option<RetryBudget>,
    /// What cannot be honoured; then nothing of it is in force.
    pub refusals: Box<[Refusal]>,
}

impl TrafficPolicy {
    pub(crate) fn reduce(policy: &api::XBackendTrafficPolicy, names: &mut Interner) -> Self {
        let types::XBackendTrafficPolicySpec {
            retry_constraint,
            session_persistence,
            target_refs,
        } = &policy.spec;
        let mut refusals = Vec::new();
        let mut services = Vec::new();
        for (index, target) in target_refs.iter().enumerate() {
            let types::XBackendTrafficPolicyTargetRefs { group, kind, name } = target;
            if *group == Kind::Service.group() && *kind == Kind::Service.as_str() {
                services.push(names.text(name));
            } else {
                let message = format!("a {kind} of group {group:?} cannot be a target; use a Service");
                refusals.push(Refusal::invalid(format!("spec.targetRefs[{index}]"), message));
            }
        }
        services.sort();
        services.dedup();
        if session_persistence.is_some() {
            let message = "sessions are not supported here; use sessionPersistence of the route's rule";
            refusals.push(Refusal::unsupported("spec.sessionPersistence", message));
        }
        let budget = retry_constraint.as_ref().map(reduce_budget).transpose();
        Self {
            meta: Meta::of(&policy.metadata),
            services: services.into(),
            budget: budget.unwrap_or_else(|refusal| {
                refusals.push(refusal);
                None
            }),
            refusals: refusals.into(),
        }
    }
}

fn reduce_budget(constraint: &types::XBackendTrafficPolicyRetryConstraint) -> Result<RetryBudget, Refusal> {
    let types::XBackendTrafficPolicyRetryConstraint { budget, min_retry_rate } = constraint;
    let budget = budget.clone().unwrap_or_default();
    let rate = min_retry_rate.clone().unwrap_or_default();
    let field = |name: &str| format!("spec.retryConstraint.{name}");
    let interval = |text: &Option<String>, name: &str, default: Duration| match text {
        None => Ok(default),
        Some(text) => {
            let interval = read_duration(text, || field(name))?;
            if interval.is_zero() {
                return Err(Refusal::invalid(field(name), "must be longer than no time"));
            }
            Ok(interval)
        }
    };
    let percent = budget.percent.unwrap_or(DEFAULT_PERCENT);
    let count = rate.count.unwrap_or(DEFAULT_COUNT);
    let out_of_range = |name: &str, value: i64| Refusal::invalid(field(name), format!("{value} is out of range"));
    Ok(RetryBudget {
        percent: u8::try_from(percent)
            .ok()
            .filter(|percent| *percent <= 100)
            .ok_or_else(|| out_of_range("budget.percent", percent))?,
        interval: interval(&budget.interval, "budget.interval", DEFAULT_INTERVAL)?,
        least: u32::try_from(count).map_err(|_| out_of_range("minRetryRate.count", count))?,
        least_interval: interval(&rate.interval, "minRetryRate.interval", DEFAULT_RATE_INTERVAL)?,
    })
}

#[cfg(test)]
mod tests;
