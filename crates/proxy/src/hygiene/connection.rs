//! The `Connection` and `Upgrade` headers.

use super::is;

/// How many header names a `Connection` header may list. Clients list one or two; a list without end would make every
/// other header cost its length.
const MOST_NAMES: usize = 8;

/// The headers that the `Connection` headers of a message declare to concern this connection only.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConnectionOptions<'a> {
    /// More names were listed than are kept: the message must be refused, because some that had to be dropped would pass.
    pub(crate) is_excessive: bool,
    names: [&'a [u8]; MOST_NAMES],
    count: usize,
}

impl<'a> ConnectionOptions<'a> {
    /// Reads the values of all `Connection` headers of a message.
    pub(crate) fn parse(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut options = Self::default();
        for token in values.into_iter().flat_map(tokens) {
            // These speak of the connection itself and name no header that is not handled anyway.
            if ["close", "keep-alive", "upgrade", "te"]
                .into_iter()
                .any(|option| is(token, option))
            {
                continue;
            }
            match options.names.get_mut(options.count) {
                Some(place) => {
                    *place = token;
                    options.count += 1;
                }
                None => options.is_excessive = true,
            }
        }
        options
    }

    /// Whether a header is declared to concern this connection only.
    pub(super) fn names(&self, name: &[u8]) -> bool {
        let mut names = self.names.iter().take(self.count);
        names.any(|listed| listed.eq_ignore_ascii_case(name))
    }
}

/// The protocol to which a request may be upgraded through the proxy.
///
/// The bytes after the upgrade are copied blindly, so a protocol that is HTTP again is not passed on: requests inside it
/// would evade every rule. A list is refused because backend and proxy might choose differently.
pub(crate) fn forwardable_upgrade(value: &[u8]) -> Option<&[u8]> {
    let protocol = value.trim_ascii();
    let is_legal = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'/');
    let begins = |front: &str| {
        let start = protocol.get(..front.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(front.as_bytes()))
    };
    let is_http = begins("h2") || begins("h3") || begins("http") || begins("tls");
    (!protocol.is_empty() && protocol.iter().all(is_legal) && !is_http).then_some(protocol)
}

/// Whether a list such as that of `TE` or `Expect` holds a token, given in lower case; parameters are passed over.
pub(super) fn has_token(value: &[u8], expected: &str) -> bool {
    tokens(value).any(|token| {
        let end = token.iter().position(|byte| *byte == b';').unwrap_or(token.len());
        token.get(..end).is_some_and(|token| is(token.trim_ascii(), expected))
    })
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let pieces = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    pieces.filter(|token| !token.is_empty())
}
