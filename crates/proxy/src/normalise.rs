//! Request targets and hosts in the one form that is matched and forwarded.
//!
//! The codecs call this before anything else looks at a request. What comes out is what routes are compared with and what
//! backends receive: a path that means one thing to a rule and another to a backend is how rules are evaded. Nothing
//! here knows routes or settings beyond the one choice about escaped slashes.

mod host;
mod path;
mod target;

pub(crate) use host::{Authority, is_host_name};
pub(crate) use path::{normalise_path, push_escaped};
pub(crate) use target::{Form, Target};

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

impl Refusal {
    /// The status of the answer.
    pub(crate) fn status(self) -> http::StatusCode {
        match self {
            Self::Connect => http::StatusCode::METHOD_NOT_ALLOWED,
            _ => http::StatusCode::BAD_REQUEST,
        }
    }

    /// A stable label, for the counter and the answer's body.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Form => "invalid_target",
            Self::Connect => "connect_refused",
            Self::Character => "invalid_character_in_target",
            Self::Fragment => "fragment_in_target",
            Self::Escape => "invalid_escape_in_path",
            Self::Null => "null_in_path",
            Self::EscapedSlash => "escaped_slash_in_path",
            Self::Host => "invalid_host",
        }
    }
}

#[cfg(test)]
mod tests;
