use proptest::prelude::*;

use super::{label, lease};

#[test]
fn a_pod_keeps_its_name() {
    assert_eq!(
        lease("gatewright-6d5f-x2x9z"),
        "gatewright-replica-gatewright-6d5f-x2x9z"
    );
    assert_eq!(label("gatewright"), "gatewright");
}

fn is_legal(name: &str, longest: usize) -> bool {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    name.len() <= longest
        && name.starts_with(is_plain)
        && name.ends_with(is_plain)
        && name.chars().all(|letter| is_plain(letter) || letter == '-')
}

proptest! {
    #[test]
    fn any_identity_gives_a_legal_name_of_its_own(one in any::<String>(), other in "[A-Za-z0-9._-]{0,300}") {
        for identity in [&one, &other] {
            prop_assert!(is_legal(&lease(identity), 253), "{}", lease(identity));
            prop_assert!(is_legal(&label(identity), 63), "{}", label(identity));
        }
        prop_assert_eq!(one == other, lease(&one) == lease(&other));
    }
}
