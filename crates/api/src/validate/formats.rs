//! The textual formats of Gateway API and Kubernetes, each with words and an example for the hint.
//!
//! The expressions are put together from a few parts, so that a label is the same label everywhere. Formats that are
//! not regular (addresses, durations as numbers) are functions.

use std::{net::IpAddr, sync::LazyLock, time::Duration};

use regex::Regex;

/// A named format.
pub(super) struct Format {
    /// What a value of this format is called: `"X" is not <noun>`.
    pub(super) noun: &'static str,
    /// How to write one.
    pub(super) hint: &'static str,
    pub(super) is_valid: fn(&str) -> bool,
    /// The expression that says it, all of it or what can be said so.
    pub(super) pattern: Option<&'static str>,
    /// In CEL, about `self`, what the expression cannot say.
    pub(super) rule: Option<&'static str>,
}

impl std::fmt::Debug for Format {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.noun)
    }
}

/// A DNS label.
macro_rules! label {
    () => {
        "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    };
}
/// A DNS name of one or more labels.
macro_rules! subdomain {
    () => {
        concat!(label!(), "(\\.", label!(), ")*")
    };
}
/// The characters of a path segment that need no escape, and the slash.
macro_rules! path_characters {
    () => {
        "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]"
    };
}
/// What the API server takes as name part of a label or annotation key.
macro_rules! qualified_name {
    () => {
        "([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]"
    };
}

macro_rules! formats {
    ($( $(#[$doc:meta])* $name:ident = $noun:literal, $hint:literal, $expression:expr; )+) => {
        $(
            $(#[$doc])*
            pub(super) static $name: Format = Format {
                noun: $noun,
                hint: $hint,
                is_valid: {
                    // The expression is a constant, and a test compiles each.
                    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| Regex::new($expression).expect($noun));
                    |text| EXPRESSION.is_match(text)
                },
                pattern: Some($expression),
                rule: None,
            };
        )+

        #[cfg(test)]
        pub(super) static ALL: &[&Format] = &[$(&$name),+];
    };
}

formats! {
    CONTROLLER_NAME = "a controller name",
        "write a domain, a slash and a path, such as gatewright.dev/gateway-controller",
        concat!("^", subdomain!(), "/", path_characters!(), "+$");
    GROUP = "an API group",
        "write a lower-case DNS name such as gateway.networking.k8s.io, or \"\" for the core group",
        concat!("^$|^", subdomain!(), "$");
    KIND = "a kind",
        "write the kind as in its manifests, such as Service",
        "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$";
    NAMESPACE = "a namespace name",
        "use lower-case letters, digits and '-', beginning and ending with a letter or digit",
        concat!("^", label!(), "$");
    DNS_LABEL = "a DNS label",
        "use lower-case letters, digits and '-', beginning and ending with a letter or digit",
        concat!("^", label!(), "$");
    /// Names of Services: they become host names of old systems, so they begin with a letter.
    DNS_1035_LABEL = "a Service name",
        "use lower-case letters, digits and '-', beginning with a letter and ending with a letter or digit",
        "^[a-z]([-a-z0-9]*[a-z0-9])?$";
    SUBDOMAIN = "a DNS name",
        "use lower-case letters, digits, '-' and '.', each part beginning and ending with a letter or digit",
        concat!("^", subdomain!(), "$");
    HOSTNAME = "a hostname",
        "write a lower-case DNS name such as www.example.com, or *.example.com for every name below it; no port, no scheme",
        concat!("^(\\*\\.)?", subdomain!(), "$");
    PRECISE_HOSTNAME = "a hostname without wildcard",
        "write a lower-case DNS name such as www.example.com; no port, no scheme, no *",
        concat!("^", subdomain!(), "$");
    /// The first alternative is only anchored at the front and the middle ones not at all: so it is in the CRD, and
    /// what the API server takes we take.
    ADDRESS_TYPE = "an address type",
        "use IPAddress, Hostname, NamedAddress, or a domain with a path",
        concat!("^Hostname|IPAddress|NamedAddress|", subdomain!(), "/", path_characters!(), "+$");
    PROTOCOL = "a protocol",
        "use HTTP, HTTPS, TLS, TCP or UDP, or a domain with a name such as example.com/protocol",
        concat!("^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$|", subdomain!(), "/[A-Za-z0-9]+$");
    LABEL_KEY = "a label or annotation key",
        "write an optional DNS name and a slash, then at most 63 letters, digits, '-', '_' and '.'",
        concat!("^(", subdomain!(), "/)?", qualified_name!(), "$");
    APPLICATION_PROTOCOL = "an application protocol",
        "write a name such as http, or a domain, a slash and a name such as kubernetes.io/h2c",
        concat!("^(", subdomain!(), "/)?", qualified_name!(), "$");
    LABEL_VALUE = "a label value",
        "use at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
        "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
    HEADER_NAME = "a header or parameter name",
        "use letters, digits and any of ! # $ % & ' * + - . ^ _ ` | ~; no space, no colon",
        "^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+$";
    HEADER_VALUE = "a header value",
        "use printable ASCII, with at most one space or tab between words and none at the ends",
        "^[!-~]+([\\t ]?[!-~]+)*$";
    GRPC_SERVICE = "a gRPC service",
        "write its full name as in the .proto file, such as shop.v1.Cart",
        "^(?i)\\.?[a-z_][a-z_0-9]*(\\.[a-z_][a-z_0-9]*)*$";
    GRPC_METHOD = "a gRPC method",
        "use letters, digits and '_', not beginning with a digit",
        "^[A-Za-z_][A-Za-z_0-9]*$";
    PATH = "a path",
        "use letters, digits and any of - / . _ ~ ! $ & ' ( ) * + , ; = : @, and escape the rest as %XX",
        "^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$";
    ORIGIN = "an origin",
        "write http:// or https://, a host (it may begin with *.) and an optional port, or * alone",
        "(^\\*$)|(^(http(s)?)://(((\\*\\.)?([a-zA-Z0-9\\-]+\\.)*[a-zA-Z0-9-]+|\\*)(:([0-9]{1,5}))?)$)";
    DURATION_TEXT = "a duration",
        "write up to four numbers with h, m, s or ms, such as 1h30m, 10s or 500ms",
        "^([0-9]{1,5}(h|m|s|ms)){1,4}$";
    /// Open at the end: so it is in the CRD.
    URI = "a URI",
        "write a scheme, :// and the rest, such as spiffe://example.com/ns/shop",
        "^(([^:/?#]+):)(//([^/?#]*))([^?#]*)(\\?([^#]*))?(#(.*))?";
    WELL_KNOWN_AUTHORITIES = "a set of well-known authorities",
        "use System, or a domain, a slash and a name such as example.com/authorities",
        concat!("^(System|(", subdomain!(), "/", qualified_name!(), "))$");
    DATA_KEY = "a data key",
        "use letters, digits, '-', '_' and '.'; not . or .. and nothing that begins with ..",
        "^([-_a-zA-Z0-9]|\\.[-_a-zA-Z0-9])[-._a-zA-Z0-9]*$";
    /// A port name: a Service name of at most 15 characters with at least one letter.
    PORT_NAME = "a port name",
        "use lower-case letters, digits and single '-' between them",
        "^[a-z0-9]+(-[a-z0-9]+)*$";
}

/// Annotation keys are label keys in which the domain may have capitals.
pub(super) static ANNOTATION_KEY: Format = Format {
    noun: "an annotation key",
    hint: "write an optional DNS name and a slash, then at most 63 letters, digits, '-', '_' and '.'",
    is_valid: |text| (LABEL_KEY.is_valid)(&text.to_lowercase()),
    pattern: Some(concat!("(?i)^(", subdomain!(), "/)?", qualified_name!(), "$")),
    rule: None,
};

/// An IPv4 or IPv6 address.
pub(super) static IP_ADDRESS: Format = Format {
    noun: "an IP address",
    hint: "write an IPv4 address such as 192.0.2.10 or an IPv6 address such as 2001:db8::10; no port, no mask",
    is_valid: |text| text.parse::<IpAddr>().is_ok(),
    pattern: None,
    rule: Some("isIP(self)"),
};

/// A network in CIDR notation.
pub(super) static NETWORK: Format = Format {
    noun: "a network",
    hint: "write an address and a prefix length, such as 10.0.0.0/8 or 2001:db8::/32",
    is_valid: is_network,
    pattern: None,
    rule: Some("isCIDR(self)"),
};

/// A duration that is more than zero.
pub(super) static POSITIVE_DURATION: Format = Format {
    noun: "a duration above zero",
    hint: "write up to four numbers with h, m, s or ms, such as 1m30s or 500ms",
    is_valid: |text| duration(text).is_some_and(|duration| !duration.is_zero()),
    pattern: DURATION_TEXT.pattern,
    rule: Some("self.matches('[1-9]')"),
};

fn is_network(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else {
        return false;
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return false;
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    // "08" and "+8" parse as numbers but are not prefix lengths.
    prefix
        .parse::<u8>()
        .is_ok_and(|length| length <= most && length.to_string() == prefix)
}

/// Reads a duration in Gateway API's format: up to four numbers of up to five digits, each with its unit.
pub(super) fn duration(text: &str) -> Option<Duration> {
    if !(DURATION_TEXT.is_valid)(text) {
        return None;
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while let Some(digits) = rest.find(|character: char| !character.is_ascii_digit()) {
        let (number, tail) = rest.split_at(digits);
        let number: u64 = number.parse().ok()?;
        let unit_length = tail
            .find(|character: char| character.is_ascii_digit())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_length);
        total += match unit {
            "h" => Duration::from_secs(number * 3600),
            "m" => Duration::from_secs(number * 60),
            "s" => Duration::from_secs(number),
            _ => Duration::from_millis(number),
        };
        rest = tail;
    }
    Some(total)
}
