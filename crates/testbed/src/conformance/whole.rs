//! How much passes in a whole run: every test that the suite has for the profiles we claim.
//!
//! A test that fails is seen by itself. One that is no longer run, because its feature is claimed no more, is seen only here.

use super::summary::Profile;

/// What the suite of this version has for one profile.
struct Whole {
    profile: &'static str,
    core: u32,
    extended: u32,
}

/// Of all profiles that are judged.
const WHOLE: [Whole; 5] = [
    Whole {
        profile: "GATEWAY-HTTP",
        core: 37,
        extended: 57,
    },
    Whole {
        profile: "GATEWAY-GRPC",
        core: 15,
        extended: 10,
    },
    Whole {
        profile: "GATEWAY-TLS",
        core: 20,
        extended: 15,
    },
    Whole {
        profile: "GATEWAY-TCP",
        core: 19,
        extended: 10,
    },
    Whole {
        profile: "GATEWAY-UDP",
        core: 20,
        extended: 10,
    },
];

/// What a whole run lacks, in words; nothing if it is whole.
pub(super) fn shortfalls(profiles: &[Profile]) -> Vec<String> {
    let lack = |whole: &Whole| {
        let Some(profile) = profiles.iter().find(|profile| profile.name == whole.profile) else {
            return Some(format!("{}: it is not in the report", whole.profile));
        };
        let (core, extended) = profile.passed();
        (core < whole.core || extended < whole.extended).then(|| {
            format!(
                "{}: {core} core and {extended} extended tests passed, where the suite has {} and {}",
                whole.profile, whole.core, whole.extended
            )
        })
    };
    WHOLE.iter().filter_map(lack).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::PROFILES, WHOLE, shortfalls};
    use crate::conformance::summary::Profile;

    fn report(extended_of_tls: u32) -> Vec<Profile> {
        let profile = |name: &str, core: u32, extended: u32| {
            serde_json::from_value(json!({
                "name": name,
                "core": { "statistics": { "Passed": core, "Failed": 0, "Skipped": 0 } },
                "extended": { "statistics": { "Passed": extended, "Failed": 0, "Skipped": 0 } },
            }))
            .unwrap()
        };
        WHOLE
            .iter()
            .map(|whole| {
                let extended = if whole.profile == "GATEWAY-TLS" {
                    extended_of_tls
                } else {
                    whole.extended
                };
                profile(whole.profile, whole.core, extended)
            })
            .collect()
    }

    #[test]
    fn what_is_judged_is_what_is_expected() {
        let names: Vec<&str> = WHOLE.iter().map(|whole| whole.profile).collect();
        assert_eq!(names.join(","), PROFILES);
    }

    #[test]
    fn a_test_or_a_profile_that_is_gone_is_missed() {
        assert!(shortfalls(&report(15)).is_empty());
        assert_eq!(
            shortfalls(&report(14)),
            ["GATEWAY-TLS: 20 core and 14 extended tests passed, where the suite has 20 and 15"]
        );
        assert_eq!(shortfalls(&report(15)[1..]), ["GATEWAY-HTTP: it is not in the report"]);
    }
}
