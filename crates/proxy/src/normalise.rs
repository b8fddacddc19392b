//! Request targets and hosts in the one form that is matched and forwarded.
//!
//! The codecs call this before anything else looks at a request. What comes out is what routes are compared with and what
//! backends receive: a path that means one thing to a rule and another to a backend is how rules are evaded. Nothing
//! here knows routes or settings beyond the one choice about escaped slashes.

mod host;
mod path;
mod target;

pub(crate) use host::{Authority, is_host_name};
pub(crate) use path::push_escaped;
pub(crate) use target::Target;

/// Why a request's target or host is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Neither a path, an absolute URI nor, for OPTIONS, an asterisk.
    Form,
    /// A tunnel is asked for.
    Connect,
    /// A control character, a space or a backslash.
    Character,
    /// A `#`: fragments are not sent.
    Fragment,
    /// A `%` without two hexadecimal digits.
    Escape,
    /// `%00`.
    Null,
    /// `%2f` or `%5c`, which some backends take for a slash and others do not.
    EscapedSlash,
    /// The host is missing or malformed.
    Host,
}

#[cfg(test)]
mod tests;
