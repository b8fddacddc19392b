//! The table of all figures for the terminal.

use std::fmt::Write;

use super::{TARGETS, number::with_spread};
use crate::figures::Figures;

/// All figures by name, each with its spread over the rounds and whether it reaches its target.
pub fn table(figures: &Figures) -> String {
    let rows: Vec<[String; 4]> = figures
        .iter()
        .map(|(name, figure)| {
            let target = TARGETS.iter().find(|target| target.figure == name);
            let verdict = target.map(|target| {
                let word = if target.is_met(figure.value) { "met" } else { "MISSED" };
                format!("{target}: {word}")
            });
            let value = with_spread(figure.value, figure.spread());
            [name.to_owned(), value, figure.unit.clone(), verdict.unwrap_or_default()]
        })
        .collect();
    let header = ["figure", "median (least–greatest)", "unit", "target"].map(str::to_owned);
    let width = |column: usize| {
        let cells = rows.iter().chain([&header]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths = [0, 1, 2, 3].map(width);
    let mut out = String::new();
    for row in [&header].into_iter().chain(&rows) {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::table;
    use crate::figures::Figures;

    #[test]
    fn the_table_shows_spreads_and_missed_targets() {
        let mut figures = Figures::default();
        figures.add("proxy.h1.vs_envoy", "ratio", vec![2.0, 2.1, 2.15]);
        figures.add("plan.load_ms.1k", "ms", vec![4.0]);
        let expected = "\
figure             median (least–greatest)  unit   target
plan.load_ms.1k    4.00                     ms
proxy.h1.vs_envoy  2.10 (2.00–2.15)         ratio  ≥ 2.2: MISSED
";
        assert_eq!(table(&figures), expected);
    }
}
