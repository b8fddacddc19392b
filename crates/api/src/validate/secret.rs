//! Limits, defaults and rules of Secret and ConfigMap, which carry the same thing: data by key.
//!
//! Values of Secrets appear in no message.

use serde_json::{Map, Value};

use super::{Code, facts::Facts, formats::DATA_KEY, report::Report, shape::Check};
use crate::Object;

/// Most bytes of all values together: what the API server stores in one object.
const MOST_BYTES: usize = 1024 * 1024;

const TLS_TYPE: &str = "kubernetes.io/tls";

pub(super) fn secret_facts(facts: &mut Facts) {
    for map in ["data", "stringData"] {
        facts.at(map, &[Check::Keys(&DATA_KEY)]);
        facts.rule(map, keys_are_short);
        facts.rule(map, content_is_small);
    }
    facts.rule("", tls_has_certificate_and_key);
    facts.default("type", "Opaque");
}

pub(super) fn config_map_facts(facts: &mut Facts) {
    for map in ["data", "binaryData"] {
        facts.at(map, &[Check::Keys(&DATA_KEY)]);
        facts.rule(map, keys_are_short);
        facts.rule(map, content_is_small);
    }
    facts.rule("", keys_are_in_one_map);
}

/// Base64 may be broken into lines, as `base64` prints it; the types read it in one piece.
pub(super) fn complete(value: &mut Value) {
    let is_secret = value.get("kind").and_then(Value::as_str) == Some("Secret");
    let map = value.get_mut(if is_secret { "data" } else { "binaryData" });
    for entry in map.and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        if let Value::String(text) = entry
            && text.contains(['\n', '\r'])
        {
            text.retain(|character| character != '\n' && character != '\r');
        }
    }
}

/// `stringData` is a convenience for writers: the API server moves it into `data`, over what is there.
pub(super) fn merge_string_data(object: &mut Object) {
    if let Object::Secret(secret) = object
        && let Some(texts) = secret.string_data.take()
    {
        let data = secret.data.get_or_insert_default();
        data.extend(
            texts
                .into_iter()
                .map(|(key, text)| (key, k8s_openapi::ByteString(text.into_bytes()))),
        );
    }
}

fn keys_are_short(map: &Value, report: &mut Report<'_>) {
    for key in map
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .filter(|key| key.len() > 253)
    {
        let message = format!("key has {} characters, at most 253 are allowed", key.len());
        report.error_at(&[key.as_str().into()], Code::WrongLength, message, "shorten it");
    }
}

fn content_is_small(map: &Value, report: &mut Report<'_>) {
    let values = map.as_object().into_iter().flat_map(Map::values);
    let bytes: usize = values.map(|value| value.as_str().map_or(0, str::len)).sum();
    // Base64 takes four characters for three bytes; the exact limit matters less than that there is one.
    if bytes / 4 * 3 > MOST_BYTES {
        report.error(
            Code::WrongLength,
            "has more than 1 MiB of content",
            "spread it over several objects",
        );
    }
}

fn tls_has_certificate_and_key(secret: &Value, report: &mut Report<'_>) {
    if secret.get("type").and_then(Value::as_str) != Some(TLS_TYPE) {
        return;
    }
    for key in ["tls.crt", "tls.key"] {
        let is_in = |map: &str| secret.get(map).and_then(|map| map.get(key)).is_some();
        if !is_in("data") && !is_in("stringData") {
            let message = format!("a Secret of type {TLS_TYPE} needs {key:?}");
            let hint = format!("add {key:?} to data (base64) or stringData (as it is)");
            report.error_at(&["data".into(), key.into()], Code::MissingField, message, hint);
        }
    }
}

fn keys_are_in_one_map(config_map: &Value, report: &mut Report<'_>) {
    let binary = config_map.get("binaryData").and_then(Value::as_object);
    let data = config_map.get("data").and_then(Value::as_object);
    if let (Some(binary), Some(data)) = (binary, data) {
        for key in binary.keys().filter(|key| data.contains_key(*key)) {
            let message = format!("{key:?} is in data and in binaryData");
            let place = ["binaryData".into(), key.as_str().into()];
            report.error_at(&place, Code::Duplicate, message, "remove one of the two");
        }
    }
}
