//! The answers that the proxy gives itself, each with a status, a line of text and a label for the counter.
//!
//! A client that gets one of these can tell from the line what happened, and an operator can tell from the counter how
//! often. Nothing here knows how an answer is written to a connection.

use gatewright_ir::Unresolved;

use crate::normalise::Refusal;

macro_rules! reasons {
    ($($(#[$attribute:meta])* $variant:ident = $status:literal, $label:literal, $text:literal;)+) => {
        /// Why the proxy answers a request itself.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Reason {
            $($(#[$attribute])* $variant,)+
        }

        impl Reason {
            /// All of them, in the order of their discriminants.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The status code.
            pub(crate) fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// A stable label for counters.
            pub(crate) fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }

            /// One line for whoever sent the request.
            pub(crate) fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

reasons! {
    /// The bytes are not HTTP, or not strictly so.
    MalformedHead = 400, "malformed_head", "bad request: the request head is malformed\n";
    /// `Content-Length` with `Transfer-Encoding`, several lengths, or a length that is no plain number.
    AmbiguousLength = 400, "ambiguous_length", "bad request: the length of the body is ambiguous\n";
    /// `Transfer-Encoding` in HTTP/1.0, which has none.
    TransferEncodingInHttp10 = 400, "transfer_encoding_in_http10", "bad request: HTTP/1.0 has no transfer encodings\n";
    /// A transfer encoding other than `chunked`.
    UnknownTransferEncoding = 501, "unknown_transfer_encoding", "not implemented: only the transfer encoding chunked is\n";
    /// The body's chunks are malformed.
    MalformedChunk = 400, "malformed_chunk", "bad request: the chunked body is malformed\n";
    /// No host, several, or one that is no host name.
    BadHost = 400, "invalid_host", "bad request: exactly one valid Host is needed\n";
    /// A target that is neither a path, an absolute URI nor, for OPTIONS, an asterisk.
    BadTarget = 400, "invalid_target", "bad request: the request target is malformed\n";
    /// A control character, a space or a backslash in the target.
    BadCharacter = 400, "invalid_character_in_target", "bad request: a character is not allowed in a request target\n";
    /// A fragment, which clients keep to themselves.
    Fragment = 400, "fragment_in_target", "bad request: the request target has a fragment\n";
    /// Half an escape.
    BadEscape = 400, "invalid_escape_in_path", "bad request: the path has a malformed escape\n";
    /// `%00`.
    NullInPath = 400, "null_in_path", "bad request: the path has an escaped null\n";
    /// `%2f` or `%5c`.
    EscapedSlash = 400, "escaped_slash_in_path", "bad request: the path has an escaped slash\n";
    /// A header name with an underscore.
    Underscore = 400, "header_underscore", "bad request: header names must not contain underscores\n";
    /// A header that HTTP/2 forbids.
    ForbiddenHeader = 400, "forbidden_header", "bad request: a header is not allowed in this version of HTTP\n";
    /// More header bytes or headers than allowed.
    HeadTooLarge = 431, "head_too_large", "the request head is too large\n";
    /// A request line longer than the whole head may be.
    TargetTooLong = 414, "target_too_long", "the request target is too long\n";
    /// A version other than 1.0, 1.1 and 2.
    UnsupportedVersion = 505, "unsupported_version", "this version of HTTP is not supported\n";
    /// An expectation other than `100-continue`.
    UnknownExpectation = 417, "unknown_expectation", "expectation failed: only 100-continue is understood\n";
    /// `CONNECT`, which is not what a gateway is for.
    ConnectMethod = 405, "connect_refused", "method not allowed: CONNECT is refused\n";
    /// The head did not arrive in time.
    HeaderTimeout = 408, "header_timeout", "the request head took too long\n";
    /// The body stood still for too long.
    BodyTimeout = 408, "body_timeout", "the request body took too long\n";
    /// No listener, host or rule matches.
    NoRoute = 404, "no_route", "not found: no route matches\n";
    /// The host belongs to another listener than the one the TLS name selected.
    Misdirected = 421, "misdirected", "misdirected request: this connection was made for another host\n";
    /// The rule has no backends, or none with a weight.
    NoBackend = 500, "no_backend", "the route has no backend\n";
    /// The backend does not exist.
    BackendNotFound = 500, "backend_not_found", "the backend of the route does not exist\n";
    /// The backend may not be referred to.
    BackendNotPermitted = 500, "ref_not_permitted", "the route may not refer to its backend\n";
    /// The backend is of an unknown kind.
    BackendInvalidKind = 500, "invalid_kind", "the backend of the route is of an unknown kind\n";
    /// The backend asks for something unsupported.
    BackendUnsupported = 500, "unsupported", "the backend of the route is not supported\n";
    /// The backend must be protected in a way that cannot be honoured.
    BackendRefused = 500, "backend_tls_refused", "the backend cannot be reached as securely as it must be\n";
    /// The cluster has no endpoints, or its name cannot be resolved.
    NoEndpoints = 503, "no_endpoints", "no endpoint of the backend is available\n";
    /// Too many requests to the backend are retries already.
    RetryBudget = 503, "retry_budget", "too many requests to the backend had to be repeated\n";
    /// No endpoint accepted a connection.
    ConnectFailed = 503, "connect_failed", "the backend does not accept connections\n";
    /// No endpoint proved over TLS who it is.
    HandshakeFailed = 502, "tls_handshake_failed", "no secure connection can be made to the backend\n";
    /// No endpoint accepted a connection in time.
    ConnectTimeout = 503, "connect_timeout", "the backend does not accept connections in time\n";
    /// The backend closed the connection instead of answering.
    BackendClosed = 502, "backend_closed", "the backend closed the connection without an answer\n";
    /// The backend's answer is not HTTP, or ambiguous.
    BadResponse = 502, "bad_response", "the backend's answer is malformed\n";
    /// The rule's limit for the whole request passed.
    RequestTimeout = 504, "request_timeout", "the request took too long\n";
    /// The rule's limit for the backend passed.
    BackendTimeout = 504, "backend_timeout", "the backend took too long\n";
    /// The client's own limit for a call of gRPC passed.
    GrpcDeadline = 504, "grpc_deadline", "the deadline of the call has passed\n";
    /// The authoriser says no.
    AuthDenied = 403, "auth_denied", "forbidden: the request is not authorised\n";
    /// The authoriser cannot be asked, or gives no usable answer.
    AuthUnavailable = 403, "auth_unavailable", "forbidden: the request cannot be authorised\n";
    /// Too many bodies wait to be judged.
    Overloaded = 503, "overloaded", "too many requests wait at once\n";
    /// The body is larger than the authoriser takes.
    BodyTooLarge = 413, "body_too_large", "the request body is too large\n";
}

impl From<Refusal> for Reason {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Form => Self::BadTarget,
            Refusal::Connect => Self::ConnectMethod,
            Refusal::Character => Self::BadCharacter,
            Refusal::Fragment => Self::Fragment,
            Refusal::Escape => Self::BadEscape,
            Refusal::Null => Self::NullInPath,
            Refusal::EscapedSlash => Self::EscapedSlash,
            Refusal::Host => Self::BadHost,
        }
    }
}

impl From<Unresolved> for Reason {
    fn from(unresolved: Unresolved) -> Self {
        match unresolved {
            Unresolved::NotFound => Self::BackendNotFound,
            Unresolved::NotPermitted => Self::BackendNotPermitted,
            Unresolved::InvalidKind => Self::BackendInvalidKind,
            Unresolved::Unsupported => Self::BackendUnsupported,
        }
    }
}

/// The words of a status line.
pub(crate) fn phrase(status: u16) -> &'static str {
    http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("")
}
