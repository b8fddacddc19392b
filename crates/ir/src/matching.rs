//! The conditions a request must meet.
//!
//! Made by the world when a route arrives, so that planning never reads a route's text again. Patterns are checked once,
//! here; matchers compile them as they see fit.

use serde::Serialize;

use crate::Text;

/// All conditions of one match; a request must meet every one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Match {
    /// The path.
    pub path: PathMatch,
    /// The method, if it matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// Header conditions; names are in lower case and occur once.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub headers: Box<[Field]>,
    /// Query parameter conditions; names occur once.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub query: Box<[Field]>,
    /// Whether only gRPC calls meet it, see [`is_grpc`], and how it ranks among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc: Option<GrpcMatch>,
}

/// The rank of a match among those of gRPC calls: the specification counts the characters of service and method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GrpcMatch {
    /// Characters of the service, zero for any.
    pub service: u16,
    /// Characters of the method, zero for any.
    pub method: u16,
}

/// Whether a request is a gRPC call, by its method and content type. What browsers send as gRPC-Web is another protocol.
pub fn is_grpc(method: &str, content_type: &[u8]) -> bool {
    const TYPE: &[u8] = b"application/grpc";
    let is_type = |start: &[u8]| start.eq_ignore_ascii_case(TYPE);
    let is_end = |rest: &[u8]| matches!(rest.first(), None | Some(b'+' | b';' | b' '));
    method == "POST"
        && content_type.get(..TYPE.len()).is_some_and(is_type)
        && content_type.get(TYPE.len()..).is_some_and(is_end)
}

impl Match {
    /// The match of a rule that states none: every request.
    pub fn everything() -> Self {
        Self {
            path: PathMatch::Prefix("/".into()),
            method: None,
            headers: Box::new([]),
            query: Box::new([]),
            grpc: None,
        }
    }
}

/// A condition on the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum PathMatch {
    /// The whole path, to the letter.
    Exact(Text),
    /// Whole leading segments: `/foo` holds `/foo`, `/foo/` and `/foo/bar`, not `/foobar`. A trailing slash is ignored.
    Prefix(Text),
    /// A pattern that the whole path must match.
    Pattern(Pattern),
}

impl PathMatch {
    /// The prefix without its trailing slash, if this is a prefix match; `/` gives the empty text.
    pub fn prefix(&self) -> Option<&str> {
        match self {
            Self::Prefix(prefix) => Some(prefix.strip_suffix('/').unwrap_or(prefix)),
            Self::Exact(_) | Self::Pattern(_) => None,
        }
    }
}

/// A condition on a header or a query parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// The name.
    pub name: Text,
    /// The condition on its value.
    pub value: TextMatch,
}

/// A condition on a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum TextMatch {
    /// To the letter.
    Exact(Text),
    /// A pattern that the whole text must match.
    Pattern(Pattern),
}

/// A regular expression known to compile within bounds. It must match the whole text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Pattern(Text);

/// Why a text is no usable pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(String);

impl Pattern {
    /// The most bytes a compiled pattern may take: a tenant's pattern must not be able to exhaust a shared proxy.
    pub const SIZE_LIMIT: usize = 1 << 20;

    /// Checks a pattern by compiling it once.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        // On its own first: `a)|(b` would compile inside the anchoring group and mean something else.
        Self::builder(text)
            .build()
            .map_err(|error| PatternError(error.to_string()))?;
        let pattern = Self(text.into());
        Self::builder(&pattern.anchored())
            .build()
            .map_err(|error| PatternError(error.to_string()))?;
        Ok(pattern)
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The pattern that matches whole texts only.
    pub fn anchored(&self) -> String {
        format!("^(?:{})$", self.0)
    }

    /// Compiles the anchored pattern.
    pub fn compile(&self) -> Result<regex::Regex, PatternError> {
        Self::builder(&self.anchored())
            .build()
            .map_err(|error| PatternError(error.to_string()))
    }

    fn builder(text: &str) -> regex::RegexBuilder {
        let mut builder = regex::RegexBuilder::new(text);
        builder.size_limit(Self::SIZE_LIMIT).nest_limit(64);
        builder
    }
}

impl std::fmt::Display for PatternError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The regex crate draws a caret under the fault over several lines; a condition's message wants the last one.
        let last = self.0.lines().last().unwrap_or_default();
        out.write_str(last.trim().trim_start_matches("error: "))
    }
}

impl std::error::Error for PatternError {}

macro_rules! methods {
    ($($variant:ident = $text:literal),+ $(,)?) => {
        /// A request method that can be matched on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "UPPERCASE")]
        pub enum Method {
            $(#[doc = concat!("`", $text, "`.")] $variant,)+
        }

        impl Method {
            /// The method as it stands in a request line.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

methods! {
    Get = "GET", Head = "HEAD", Post = "POST", Put = "PUT", Delete = "DELETE", Connect = "CONNECT", Options = "OPTIONS",
    Trace = "TRACE", Patch = "PATCH",
}

#[cfg(test)]
mod tests {
    use super::{Pattern, is_grpc};

    #[test]
    fn a_grpc_call_is_a_post_of_that_content_type() {
        for (method, content_type, expected) in [
            ("POST", "application/grpc", true),
            ("POST", "Application/gRPC+proto", true),
            ("POST", "application/grpc; charset=utf-8", true),
            ("POST", "application/grpc-web", false),
            ("POST", "application/json", false),
            ("GET", "application/grpc", false),
            ("POST", "", false),
        ] {
            assert_eq!(
                is_grpc(method, content_type.as_bytes()),
                expected,
                "{method} {content_type}"
            );
        }
    }

    #[test]
    fn a_pattern_must_match_the_whole_text() {
        let pattern = Pattern::new("a|ab").unwrap().compile().unwrap();
        assert!(pattern.is_match("ab") && pattern.is_match("a") && !pattern.is_match("abc"));
    }

    #[test]
    fn patterns_that_break_out_of_the_anchoring_group_are_refused() {
        assert!(Pattern::new("a)|(?:b").is_err());
    }

    #[test]
    fn patterns_that_would_take_too_much_memory_are_refused() {
        assert!(Pattern::new(r"(\pL{1000}){1000}").is_err());
        assert!(Pattern::new(&"(".repeat(500)).is_err());
    }
}
