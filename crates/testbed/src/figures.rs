//! Figures: what a run measured, by stable names.
//!
//! Written to `target/bench/results.json` as an object from name to `{value, unit, rounds}`; `rounds` holds the value of
//! every round, of which `value` is the median.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::statistics::{median, spread};

/// One measured figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The median of the rounds.
    pub value: f64,
    /// What it counts.
    pub unit: String,
    /// Every round's value, in order.
    pub rounds: Vec<f64>,
}

impl Figure {
    /// The least and the greatest round.
    pub fn spread(&self) -> (f64, f64) {
        spread(&self.rounds)
    }
}

/// The figures of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(BTreeMap<String, Figure>);

impl Figures {
    /// Records a figure of several rounds.
    pub fn add(&mut self, name: impl Into<String>, unit: &str, rounds: Vec<f64>) {
        let figure = Figure {
            value: median(&rounds),
            unit: unit.to_owned(),
            rounds,
        };
        self.0.insert(name.into(), figure);
    }

    /// Takes in the figures of another part of the run.
    pub fn extend(&mut self, other: Figures) {
        self.0.extend(other.0);
    }

    /// A figure, if it was measured.
    pub fn get(&self, name: &str) -> Option<&Figure> {
        self.0.get(name)
    }

    /// All figures, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Figure)> {
        self.0.iter().map(|(name, figure)| (name.as_str(), figure))
    }

    /// Writes the figures as JSON, making the folder if needed.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::Figures;

    #[test]
    fn figures_are_an_object_from_name_to_value_unit_and_rounds() {
        let mut figures = Figures::default();
        figures.add("proxy.h1.vs_envoy", "ratio", vec![2.5, 3.0, 2.0]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bench/results.json");
        figures.write(&path).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let expected =
            serde_json::json!({"proxy.h1.vs_envoy": {"value": 2.5, "unit": "ratio", "rounds": [2.5, 3.0, 2.0]}});
        assert_eq!(read, expected);
    }
}
