//! Session persistence of a rule, the same in HTTPRoute and GRPCRoute.

use gatewright_api::{httproutes as types, meta::ObjectMeta};
use gatewright_ir::{Carrier, Text};

use super::{Refusal, RouteKind, SessionPersistence, filters, http_route::read_duration};
use crate::{Interner, desired::owned::short_digest};

/// The rule it stands in.
pub(super) struct Place<'a> {
    pub(super) kind: RouteKind,
    pub(super) metadata: &'a ObjectMeta,
    pub(super) rule: usize,
}

pub(super) fn reduce(
    session: &types::HttpRouteRulesSessionPersistence,
    place: &Place<'_>,
    field: &str,
    names: &mut Interner,
) -> Result<SessionPersistence, Refusal> {
    use types::HttpRouteRulesSessionPersistenceCookieConfigLifetimeType as Lifetime;
    use types::HttpRouteRulesSessionPersistenceType as Type;
    let types::HttpRouteRulesSessionPersistence {
        absolute_timeout,
        cookie_config,
        idle_timeout,
        session_name,
        r#type,
    } = session;
    let lifetime = cookie_config.as_ref().and_then(|cookie| cookie.lifetime_type.as_ref());
    let carrier = match (r#type, lifetime) {
        (Some(Type::Header), _) => Carrier::Header,
        (Some(Type::Cookie) | None, Some(Lifetime::Permanent)) => Carrier::PermanentCookie,
        (Some(Type::Cookie) | None, Some(Lifetime::Session) | None) => Carrier::SessionCookie,
    };
    let read = |text: &Option<String>, name: &str| {
        let Some(text) = text else { return Ok(None) };
        let field = || format!("{field}.{name}");
        let duration = read_duration(text, field)?;
        if duration.is_zero() {
            return Err(Refusal::invalid(field(), "a session must last longer than no time"));
        }
        Ok(Some(duration))
    };
    let absolute_timeout = read(absolute_timeout, "absoluteTimeout")?;
    if carrier == Carrier::PermanentCookie && absolute_timeout.is_none() {
        let message = "a permanent cookie needs a time after which it ends";
        return Err(Refusal::invalid(format!("{field}.absoluteTimeout"), message));
    }
    Ok(SessionPersistence {
        carrier,
        name: match session_name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => read_name(name, carrier, &format!("{field}.sessionName"), names)?,
            None => default_name(place),
        },
        absolute_timeout,
        idle_timeout: read(idle_timeout, "idleTimeout")?,
    })
}

/// A name of its own for every rule: two that share one would take each other's sessions away.
fn default_name(place: &Place<'_>) -> Text {
    let Place { kind, metadata, rule } = place;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    let digest = short_digest(&format!("{}/{namespace}/{name}/{rule}", kind.kind()));
    format!("gatewright-{digest}").into()
}

fn read_name(name: &str, carrier: Carrier, field: &str, names: &mut Interner) -> Result<Text, Refusal> {
    if !name.bytes().all(is_token) {
        let message = format!("{name:?} cannot be the name of a cookie or a header; use letters, digits and dashes");
        return Err(Refusal::invalid(field, message));
    }
    if carrier != Carrier::Header {
        return Ok(names.text(name));
    }
    filters::header_name(name, names).map_err(|(cause, message)| Refusal {
        cause,
        field: field.into(),
        message: message.into(),
    })
}

/// A character of a token, as RFC 9110 has it.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
