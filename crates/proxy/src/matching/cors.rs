//! A CORS filter with everything prepared that a request needs, and what it says about one request.
//!
//! The proxy answers preflights itself; to all other requests of another origin the response gets headers, which replace
//! whatever the backend says about the same.

use gatewright_ir::{Cors, Listed, OriginPattern};
use http::{
    HeaderName, HeaderValue,
    header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, VARY,
    },
};

use super::{HeaderChanges, RequestView};

/// A CORS filter.
pub(crate) struct CompiledCors {
    origins: Box<[OriginPattern]>,
    /// Whether every origin is allowed.
    is_open: bool,
    credentials: bool,
    methods: Names,
    request_headers: Names,
    exposed_headers: Names,
    max_age: HeaderValue,
}

/// Some names as one header value, or all.
enum Names {
    These(HeaderValue),
    All,
    Nothing,
}

/// What a CORS filter says about a request.
pub(crate) enum Verdict {
    /// It is no preflight; the response is changed so.
    Pass(Option<Box<HeaderChanges>>),
    /// It is a preflight, to be answered with these headers.
    Preflight(Box<HeaderChanges>),
}

impl CompiledCors {
    /// Prepares a filter; None when it holds something that cannot stand in a header.
    pub(super) fn compile(cors: &Cors) -> Option<Self> {
        let Cors {
            origins,
            credentials,
            methods,
            request_headers,
            exposed_headers,
            max_age,
        } = cors;
        Some(Self {
            origins: origins.clone(),
            is_open: origins.contains(&OriginPattern::Any),
            credentials: *credentials,
            methods: Names::compile(methods)?,
            request_headers: Names::compile(request_headers)?,
            exposed_headers: Names::compile(exposed_headers)?,
            max_age: HeaderValue::from(max_age.as_secs()),
        })
    }

    /// Judges a request.
    pub(crate) fn judge(&self, request: &impl RequestView) -> Verdict {
        let first = |name| request.header_values(name).next();
        let Some(origin) = first("origin") else {
            // Whoever keeps this response must not give it to a page that would need other headers.
            return Verdict::Pass((!self.says_all()).then(|| Box::new(vary(&[b"Origin"]))));
        };
        let is_allowed =
            std::str::from_utf8(origin).is_ok_and(|origin| self.origins.iter().any(|pattern| pattern.matches(origin)));
        let asked_method = first("access-control-request-method").filter(|_| request.method() == "OPTIONS");
        let mut said = Said::default();
        if is_allowed {
            // A request that carries credentials never gets a wildcard.
            let is_credentialed = self.credentials || first("cookie").is_some() || first("authorization").is_some();
            let echoed = if self.says_all() && !is_credentialed {
                Some(HeaderValue::from_static("*"))
            } else {
                HeaderValue::from_bytes(origin).ok()
            };
            said.say(ACCESS_CONTROL_ALLOW_ORIGIN, echoed);
            let credentials = self.credentials.then(|| HeaderValue::from_static("true"));
            said.say(ACCESS_CONTROL_ALLOW_CREDENTIALS, credentials);
            // There is no request header to take the names from.
            let exposed = self.exposed_headers.value(is_credentialed, None);
            said.say(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
            if asked_method.is_some() {
                let methods = self.methods.value(is_credentialed, asked_method);
                said.say(ACCESS_CONTROL_ALLOW_METHODS, methods);
                let asked_headers = first("access-control-request-headers");
                let headers = self.request_headers.value(is_credentialed, asked_headers);
                said.say(ACCESS_CONTROL_ALLOW_HEADERS, headers);
                said.say(ACCESS_CONTROL_MAX_AGE, Some(self.max_age.clone()));
            }
        }
        let varies: &[&[u8]] = match (self.says_all(), asked_method.is_some()) {
            (true, _) => &[],
            (false, false) => &[b"Origin"],
            (false, true) => &[
                b"Origin",
                b"Access-Control-Request-Method",
                b"Access-Control-Request-Headers",
            ],
        };
        let changes = Box::new(said.into_changes(varies));
        if asked_method.is_some() {
            Verdict::Preflight(changes)
        } else {
            Verdict::Pass(Some(changes))
        }
    }

    /// Whether the answer is the same for every origin.
    fn says_all(&self) -> bool {
        self.is_open && !self.credentials
    }
}

impl Names {
    fn compile(listed: &Listed) -> Option<Self> {
        Some(match listed {
            Listed::All => Self::All,
            Listed::These(names) if names.is_empty() => Self::Nothing,
            Listed::These(names) => Self::These(HeaderValue::from_str(&names.join(", ")).ok()?),
        })
    }

    /// The names. Where all are meant but a wildcard may not be said, those that were asked for.
    fn value(&self, is_credentialed: bool, asked: Option<&[u8]>) -> Option<HeaderValue> {
        match self {
            Self::These(names) => Some(names.clone()),
            Self::All if !is_credentialed => Some(HeaderValue::from_static("*")),
            Self::All => asked.and_then(|asked| HeaderValue::from_bytes(asked).ok()),
            Self::Nothing => None,
        }
    }
}

/// The headers of CORS for one response: what is not said must not be said by the backend either.
#[derive(Default)]
struct Said(Vec<(HeaderName, HeaderValue)>);

impl Said {
    fn say(&mut self, name: HeaderName, value: Option<HeaderValue>) {
        self.0.extend(value.map(|value| (name, value)));
    }

    fn into_changes(self, varies: &[&[u8]]) -> HeaderChanges {
        let all = [
            ACCESS_CONTROL_ALLOW_ORIGIN,
            ACCESS_CONTROL_ALLOW_CREDENTIALS,
            ACCESS_CONTROL_EXPOSE_HEADERS,
            ACCESS_CONTROL_ALLOW_METHODS,
            ACCESS_CONTROL_ALLOW_HEADERS,
            ACCESS_CONTROL_MAX_AGE,
        ];
        let is_said = |name: &HeaderName| self.0.iter().any(|(said, _)| said == name);
        let remove = all.into_iter().filter(|name| !is_said(name)).collect();
        HeaderChanges {
            set: self.0.into(),
            remove,
            add: vary(varies).add,
        }
    }
}

fn vary(names: &[&[u8]]) -> HeaderChanges {
    let value = HeaderValue::from_bytes(&names.join(&b", "[..])).ok();
    HeaderChanges {
        add: value
            .filter(|value| !value.is_empty())
            .map(|value| (VARY, value))
            .into_iter()
            .collect(),
        ..HeaderChanges::default()
    }
}
