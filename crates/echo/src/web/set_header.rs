//! `X-Echo-Set-Header`: response headers by wish of the client.
//!
//! Called last for each answer. Headers that frame the message are left alone: the backend's own answers stay valid.

use http::{HeaderMap, HeaderName, HeaderValue, header};

#[cfg(test)]
mod tests;

const STEERING: HeaderName = HeaderName::from_static("x-echo-set-header");

/// Sets the headers that the request asks for, and returns their names as they were written.
///
/// A name that is asked for again adds its value after a comma; the first replaces what the backend had set.
pub(super) fn apply(request: &HeaderMap, response: &mut HeaderMap) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for wishes in request.get_all(STEERING) {
        for wish in String::from_utf8_lossy(wishes.as_bytes()).split(',') {
            let (written, value) = wish.split_once(':').unwrap_or((wish, ""));
            let (written, value) = (written.trim(), value.trim());
            let Ok(name) = HeaderName::from_bytes(written.as_bytes()) else {
                continue;
            };
            if name == header::CONTENT_LENGTH || name == header::TRANSFER_ENCODING {
                continue;
            }
            let is_repeated = names.iter().any(|earlier| earlier.eq_ignore_ascii_case(written));
            let earlier = response
                .get(&name)
                .filter(|_| is_repeated)
                .and_then(|value| value.to_str().ok());
            let value = earlier.map_or_else(|| value.to_owned(), |earlier| format!("{earlier},{value}"));
            let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) else {
                continue;
            };
            response.insert(name, value);
            if !is_repeated {
                names.push(written.to_owned());
            }
        }
    }
    names
}
