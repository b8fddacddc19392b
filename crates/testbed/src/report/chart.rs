//! Bar charts as SVG, drawn without any library.
//!
//! Horizontal bars with their values beside them, and a thin line from the least to the greatest round. Colours follow the
//! reader's light or dark setting. Knows nothing of what the bars stand for.

use std::fmt::Write;

use super::number::short;

const WIDTH: f64 = 720.0;
const LABELS: f64 = 190.0;
const VALUES: f64 = 110.0;
const TOP: f64 = 62.0;
const ROW: f64 = 34.0;
const THICKNESS: f64 = 20.0;

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What to know to read it.
    pub subtitle: String,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Whose it is.
    pub label: String,
    /// How long it is.
    pub value: f64,
    /// The least and the greatest value that were measured.
    pub spread: (f64, f64),
    /// Whether it is one that the chart is about.
    pub is_ours: bool,
}

impl Chart {
    /// The chart as a file.
    pub fn svg(&self) -> String {
        let height = TOP + ROW * self.bars.iter().map(|_| 1.0).sum::<f64>() + 10.0;
        let longest = self
            .bars
            .iter()
            .map(|bar| bar.value.max(bar.spread.1))
            .fold(0.0, f64::max);
        let scale = if longest > 0.0 {
            (WIDTH - LABELS - VALUES) / longest
        } else {
            0.0
        };
        let mut out = String::new();
        // Writing to a String cannot fail; so throughout this file.
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             role=\"img\" aria-labelledby=\"title description\">\n{STYLE}"
        );
        let _ = writeln!(out, "<title id=\"title\">{}</title>", escaped(&self.title));
        let _ = writeln!(out, "<desc id=\"description\">{}</desc>", escaped(&self.description()));
        let _ = writeln!(
            out,
            "<text class=\"heading\" x=\"8\" y=\"24\">{}</text>",
            escaped(&self.title)
        );
        let _ = writeln!(
            out,
            "<text class=\"quiet\" x=\"8\" y=\"44\">{}</text>",
            escaped(&self.subtitle)
        );
        let mut top = TOP;
        for bar in &self.bars {
            bar.draw(&mut out, top, scale);
            top += ROW;
        }
        let bottom = top - (ROW - THICKNESS) / 2.0;
        let _ = writeln!(
            out,
            "<line class=\"axis\" x1=\"{LABELS}\" y1=\"{:.1}\" x2=\"{LABELS}\" y2=\"{bottom:.1}\"/>\n</svg>",
            TOP - 6.0
        );
        out
    }

    /// The same in words, for those who cannot see it.
    fn description(&self) -> String {
        let bars = self
            .bars
            .iter()
            .map(|bar| format!("{}: {}", bar.label, short(bar.value)));
        format!("{}. {}", self.subtitle, bars.collect::<Vec<_>>().join("; "))
    }
}

impl Bar {
    fn draw(&self, out: &mut String, top: f64, scale: f64) {
        let length = self.value * scale;
        let middle = top + THICKNESS / 2.0;
        let (least, greatest) = (LABELS + self.spread.0 * scale, LABELS + self.spread.1 * scale);
        let class = if self.is_ours { "ours" } else { "other" };
        let text_end = LABELS - 10.0;
        let base = middle + 5.0;
        let _ = writeln!(
            out,
            "<text class=\"label\" x=\"{text_end}\" y=\"{base:.1}\">{}</text>",
            escaped(&self.label)
        );
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{LABELS}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{THICKNESS}\" rx=\"2\"/>"
        );
        if greatest - least > 1.0 {
            let _ = writeln!(
                out,
                "<path class=\"spread\" d=\"M{least:.1} {middle:.1}H{greatest:.1}M{least:.1} {:.1}v8M{greatest:.1} {:.1}v8\"/>",
                middle - 4.0,
                middle - 4.0
            );
        }
        let end = (LABELS + length).max(greatest) + 8.0;
        let _ = writeln!(
            out,
            "<text class=\"value\" x=\"{end:.1}\" y=\"{base:.1}\">{}</text>",
            short(self.value)
        );
    }
}

const STYLE: &str = "\
<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.heading { font-size: 16px; font-weight: 600; }
.label { text-anchor: end; }
.value { font-weight: 600; }
.quiet { fill: #59636e; }
.ours { fill: #0f766e; }
.other { fill: #9aa4af; }
.axis { stroke: #59636e; stroke-width: 1; }
.spread { stroke: #1f2328; stroke-width: 1; fill: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .quiet { fill: #9198a1; }
  .ours { fill: #2dd4bf; }
  .other { fill: #6e7681; }
  .axis { stroke: #9198a1; }
  .spread { stroke: #e6edf3; }
}
</style>
";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests;
