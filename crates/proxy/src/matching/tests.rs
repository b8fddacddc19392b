mod figures;
mod generate;
mod incremental;
mod property;
mod rules;

use gatewright_ir::reference::Request;

use super::RequestView;

/// The reference matcher's request as the compiled tables read it.
pub(super) struct View<'a> {
    pub(super) request: &'a Request,
    /// The query before decoding.
    pub(super) query: Option<String>,
}

impl<'a> View<'a> {
    pub(super) fn new(request: &'a Request) -> Self {
        let escape = |text: &str| {
            text.bytes()
                .map(|byte| format!("%{byte:02X}"))
                .collect::<Vec<_>>()
                .concat()
        };
        let pairs: Vec<_> = request
            .query
            .iter()
            .map(|(name, value)| format!("{}={}", escape(name), escape(value)))
            .collect();
        Self {
            request,
            query: (!pairs.is_empty()).then(|| pairs.join("&")),
        }
    }
}

impl RequestView for View<'_> {
    fn host(&self) -> &str {
        &self.request.host
    }

    fn method(&self) -> &str {
        &self.request.method
    }

    fn path(&self) -> &str {
        &self.request.path
    }

    fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    fn header_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        let headers = self.request.headers.iter();
        headers
            .filter(move |(candidate, _)| candidate == name)
            .map(|(_, value)| value.as_bytes())
    }
}
