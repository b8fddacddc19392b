//! `docs/metrics.md`: every exported metric, made from the catalogue.

use std::fmt::Write as _;

use crate::metrics::catalogue;

const INTRODUCTION: &str = "# Metrics

`GET /metrics` on `--metrics-bind-address` (default `127.0.0.1:9871`) answers in Prometheus' text format. Every family is always
there, also before its first sample. Names and labels stay stable. This page is made by `gatewright docs metrics`.

- `gateway` is `namespace/name` of a Gateway, `listener` the name of one of its listeners.
- `route` is `kind/namespace/name`, for example `HTTPRoute/shop/cart`, and empty for requests that no route matched.
- `address` is an address and port on which clients are accepted, followed by `/udp` if they send datagrams.
- `reason` of a local answer says why the proxy answered itself, for example because no route matched or no endpoint was there.

| Metric | Type | Labels | Meaning |
|---|---|---|---|
";

/// The page.
pub(super) fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    for family in catalogue::ALL {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, labels, help) = (family.name, family.kind, labels.join(", "), family.help);
        let _ = writeln!(page, "| `{name}` | {kind} | {labels} | {help} |");
    }
    page
}
