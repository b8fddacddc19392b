//! Writes Prometheus' text format.

use std::fmt::{Display, Write as _};

use gatewright_proxy::Histogram;

use super::catalogue::Family;

/// The text as far as it is written, and the family that is being written.
#[derive(Default)]
pub(super) struct Exposition {
    text: String,
    name: &'static str,
    labels: &'static [&'static str],
}

impl Exposition {
    /// Begins a family; the samples that follow belong to it.
    pub(super) fn family(&mut self, family: &Family) {
        let Family {
            name,
            kind,
            labels,
            help,
        } = family;
        (self.name, self.labels) = (name, labels);
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// A whole number with the values of the family's labels.
    pub(super) fn sample(&mut self, values: &[&str], number: u64) {
        self.line("", values, None, number);
    }

    /// A number with a fraction.
    pub(super) fn number(&mut self, values: &[&str], number: f64) {
        self.line("", values, None, number);
    }

    pub(super) fn histogram(&mut self, values: &[&str], histogram: &Histogram) {
        let Histogram { buckets, sum } = histogram;
        for (bound, count) in buckets {
            let bound = if bound.is_infinite() {
                "+Inf".to_owned()
            } else {
                bound.to_string()
            };
            self.line("_bucket", values, Some(&bound), count);
        }
        self.line("_sum", values, None, sum);
        self.line("_count", values, None, buckets.last().map_or(0, |(_, count)| *count));
    }

    fn line(&mut self, suffix: &str, values: &[&str], bound: Option<&str>, number: impl Display) {
        debug_assert_eq!(values.len(), self.labels.len(), "{}", self.name);
        let labels = self.labels.iter().copied().zip(values.iter().copied());
        let _ = write!(self.text, "{}{suffix}", self.name);
        for (position, (label, value)) in labels.chain(bound.map(|bound| ("le", bound))).enumerate() {
            let open = if position == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{open}{label}=\"{}\"", Escaped(value));
        }
        let close = if values.is_empty() && bound.is_none() { "" } else { "}" };
        let _ = writeln!(self.text, "{close} {number}");
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// A label value: backslash, quote and line end are escaped.
struct Escaped<'t>(&'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => out.write_str("\\\\")?,
                '"' => out.write_str("\\\"")?,
                '\n' => out.write_str("\\n")?,
                other => out.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Exposition, Family, Histogram};

    #[test]
    fn samples_and_histograms_have_prometheus_form() {
        let mut out = Exposition::default();
        out.family(&Family {
            name: "a_total",
            kind: "counter",
            labels: &["x"],
            help: "Help.",
        });
        out.sample(&["quo\"te\\"], 3);
        out.family(&Family {
            name: "b",
            kind: "histogram",
            labels: &[],
            help: "Help.",
        });
        let buckets = vec![(0.005, 1), (f64::INFINITY, 2)];
        out.histogram(&[], &Histogram { buckets, sum: 1.5 });
        let expected = r#"# HELP a_total Help.
# TYPE a_total counter
a_total{x="quo\"te\\"} 3
# HELP b Help.
# TYPE b histogram
b_bucket{le="0.005"} 1
b_bucket{le="+Inf"} 2
b_sum 1.5
b_count 2
"#;
        assert_eq!(out.into_text(), expected);
    }
}
