//! BackendTLSPolicy, reduced: to which Services TLS is spoken, and how they are known.

use gatewright_api::{self as api, Kind, backendtlspolicies as types};
use gatewright_ir::{HostPattern, SubjectName, Text};

use super::{Meta, ObjectRef, Refusal};
use crate::Interner;

/// The only set of authorities that has a name in the specification.
const SYSTEM: &str = "System";

/// A BackendTLSPolicy.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsPolicy {
    /// Generation and age.
    pub meta: Meta,
    /// The Services it is for, in its own namespace.
    pub targets: Box<[TlsTarget]>,
    /// The name to ask for.
    pub hostname: Text,
    /// Whether those are believed that the system believes.
    pub trusts_system: bool,
    /// ConfigMaps with authorities, in its own namespace.
    pub authorities: Box<[ObjectRef]>,
    /// Names that count instead of the hostname.
    pub names: Box<[SubjectName]>,
    /// What cannot be honoured; then nothing is sent to its Services.
    pub refusals: Box<[Refusal]>,
}

/// A Service, or one of its ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TlsTarget {
    /// The Service.
    pub service: Text,
    /// The name of a port; none means all of them.
    pub port: Option<Text>,
}

impl TlsPolicy {
    pub(crate) fn reduce(policy: &api::BackendTlsPolicy, names: &mut Interner) -> Self {
        let types::BackendTlsPolicySpec {
            options,
            target_refs,
            validation,
        } = &policy.spec;
        let types::BackendTlsPolicyValidation {
            ca_certificate_refs,
            hostname,
            subject_alt_names,
            well_known_ca_certificates,
        } = validation;
        let mut refusals = Vec::new();
        let mut targets = Vec::new();
        for (index, target) in target_refs.iter().enumerate() {
            let types::BackendTlsPolicyTargetRefs {
                group,
                kind,
                name,
                section_name,
            } = target;
            if *group == Kind::Service.group() && *kind == Kind::Service.as_str() {
                targets.push(TlsTarget {
                    service: names.text(name),
                    port: names.optional(section_name.as_deref()),
                });
            } else {
                let message = format!("a {kind} of group {group:?} cannot be a target; use a Service");
                refusals.push(Refusal::invalid(format!("spec.targetRefs[{index}]"), message));
            }
        }
        targets.sort();
        targets.dedup();
        // An option may demand more than is done here.
        if let Some(option) = options.as_ref().and_then(|options| options.keys().next()) {
            let message = format!("the TLS option {option} is not known here");
            refusals.push(Refusal::unsupported("spec.options", message));
        }
        if !matches!(HostPattern::parse(hostname), Ok(HostPattern::Exact(_))) {
            let message = format!("{hostname:?} is not a DNS name");
            refusals.push(Refusal::invalid("spec.validation.hostname", message));
        }
        if let Some(name) = well_known_ca_certificates.as_ref().filter(|name| *name != SYSTEM) {
            let message = format!("{name:?} is not known here; use {SYSTEM:?}, or name a ConfigMap");
            refusals.push(Refusal::unsupported("spec.validation.wellKnownCACertificates", message));
        }
        let mut subjects = Vec::new();
        for (index, name) in subject_alt_names.iter().flatten().enumerate() {
            match reduce_name(name, &format!("spec.validation.subjectAltNames[{index}]"), names) {
                Ok(name) => subjects.push(name),
                Err(refusal) => refusals.push(refusal),
            }
        }
        let authorities = ca_certificate_refs.iter().flatten().map(|reference| {
            let (group, kind) = (Some(reference.group.as_str()), Some(reference.kind.as_str()));
            ObjectRef::reduce((group, kind), (None, &reference.name), names)
        });
        let authorities: Box<[ObjectRef]> = authorities.collect();
        Self {
            meta: Meta::of(&policy.metadata),
            targets: targets.into(),
            hostname: names.text(&hostname.to_ascii_lowercase()),
            trusts_system: well_known_ca_certificates.is_some(),
            authorities,
            names: subjects.into(),
            refusals: refusals.into(),
        }
    }
}

fn reduce_name(
    name: &types::BackendTlsPolicyValidationSubjectAltNames,
    field: &str,
    names: &mut Interner,
) -> Result<SubjectName, Refusal> {
    use types::BackendTlsPolicyValidationSubjectAltNamesType as Type;
    match name.r#type {
        Type::Hostname => {
            let hostname = name.hostname.as_deref().unwrap_or_default();
            let pattern = HostPattern::parse(hostname).ok();
            let pattern = pattern.filter(|pattern| *pattern != HostPattern::Any);
            pattern.map(SubjectName::Dns).ok_or_else(|| {
                let message = format!("{hostname:?} is not a DNS name");
                Refusal::invalid(format!("{field}.hostname"), message)
            })
        }
        Type::Uri => match name.uri.as_deref() {
            Some(uri) if uri.contains(':') => Ok(SubjectName::Uri(names.text(uri))),
            uri => {
                let message = format!("{:?} is not a URI", uri.unwrap_or_default());
                Err(Refusal::invalid(format!("{field}.uri"), message))
            }
        },
    }
}

#[cfg(test)]
mod tests;
