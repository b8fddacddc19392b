//! Origins of IR pieces: made by the planner, read back when a fact or a metric arrives.
//!
//! The texts are injective because no part can hold a slash.

use gatewright_api::{Kind, ObjectName};
use gatewright_ir::{Origin, Text};

use crate::Key;

/// The origin of an object.
pub fn object(kind: Kind, key: &Key) -> Origin {
    Origin::new(format!("{kind}/{}/{}", key.namespace, key.name))
}

/// The origin of a listener of a Gateway or a ListenerSet.
pub fn listener(kind: Kind, key: &Key, name: &str) -> Origin {
    Origin::new(format!("{kind}/{}/{}/{name}", key.namespace, key.name))
}

/// The object that an origin stands for, and the listener's name if it stands for one.
pub fn parse(origin: &Origin) -> Option<(ObjectName, Option<Text>)> {
    let mut parts = origin.as_str().splitn(4, '/');
    let kind = parts.next()?;
    let kind = *Kind::ALL.iter().find(|known| known.as_str() == kind)?;
    let (namespace, name) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    Some((ObjectName { kind, namespace, name }, parts.next().map(Text::from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_leads_back_to_its_object() {
        let key = Key::new("shop", "front");
        let (name, section) = parse(&listener(Kind::Gateway, &key, "https")).unwrap();
        assert_eq!(
            (name.to_string().as_str(), section.as_deref()),
            ("Gateway shop/front", Some("https"))
        );
        let (name, section) = parse(&object(Kind::HttpRoute, &key)).unwrap();
        assert_eq!((name.to_string().as_str(), section), ("HTTPRoute shop/front", None));
    }
}
