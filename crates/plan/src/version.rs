//! Whether the cluster's definitions of Gateway API are of versions that this controller knows.
//!
//! Every class of ours shows it. Other versions are served as well as can be: what is not known of them is not read.

use gatewright_world::{
    World,
    desired::{Condition, ConditionKind, Reason},
};

/// The newest version of Gateway API, as major and minor number, whose kinds and fields are known here. Within the same
/// major version older ones are subsets.
const NEWEST: (u32, u32) = (1, 6);

/// The condition; none where nothing is known of the definitions.
pub(crate) fn condition(world: &World) -> Option<Condition> {
    let definitions = world.definitions()?;
    let kind = ConditionKind::SupportedVersion;
    let (major, minor) = NEWEST;
    for (name, version) in definitions {
        let told = match version.as_deref() {
            Some(version) if is_supported(version) => continue,
            Some(version) => format!("is of version {version}"),
            None => "does not say of which version it is".to_owned(),
        };
        let message = format!(
            "CustomResourceDefinition {name} {told}; versions up to v{major}.{minor} are supported, others as well as can be"
        );
        return Some(Condition::fails(kind, Reason::UnsupportedVersion, message));
    }
    let message = "All definitions of Gateway API are of a supported version";
    Some(Condition::holds(kind, Reason::SupportedVersion, message))
}

/// Whether a version such as `v1.6.1` or `v1.5.0-rc.1` is known.
fn is_supported(version: &str) -> bool {
    let mut numbers = version.strip_prefix('v').unwrap_or(version).split('.');
    let mut next = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    let (Some(major), Some(minor)) = (next(), next()) else {
        return false;
    };
    major == NEWEST.0 && minor <= NEWEST.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(definitions: &[(&str, Option<&str>)]) -> Condition {
        let mut world = World::in_cluster();
        let owned = definitions
            .iter()
            .map(|(name, version)| ((*name).to_owned(), version.map(str::to_owned)));
        world.set_definitions(owned.collect());
        condition(&world).unwrap()
    }

    #[test]
    fn versions_up_to_the_newest_are_supported_and_their_candidates_too() {
        for version in ["v1.6.1", "v1.6.0-rc.2", "v1.0.0", "v1.5.99", "1.4.0"] {
            assert!(is_supported(version), "{version}");
        }
        for version in ["v1.7.0", "v0.8.1", "v2.0.0", "v1", "", "vx.y", "main"] {
            assert!(!is_supported(version), "{version}");
        }
    }

    #[test]
    fn one_definition_of_another_version_is_enough_to_say_so() {
        let good = told(&[("a", Some("v1.6.1")), ("b", Some("v1.5.0"))]);
        assert_eq!(good.reason, Reason::SupportedVersion);
        assert!(!good.is_problem());
        for (version, expected) in [(Some("v1.9.0"), "v1.9.0"), (None, "does not say")] {
            let bad = told(&[("a", Some("v1.6.1")), ("b.example", version)]);
            assert_eq!(bad.reason, Reason::UnsupportedVersion);
            assert!(bad.is_problem());
            assert!(
                bad.message.contains("b.example") && bad.message.contains(expected),
                "{}",
                bad.message
            );
        }
    }

    #[test]
    fn where_nothing_is_known_nothing_is_said() {
        assert_eq!(condition(&World::default()), None);
    }
}
