//! The features that are claimed by a file, as long as the GatewayClass itself claims none.

use std::{fs, path::Path};

use anyhow::{Context, ensure};

/// The features of the file in the suite's folder.
pub(super) fn read(module: &Path) -> anyhow::Result<Vec<String>> {
    let path = module.join("features.txt");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let features = parse(&text);
    ensure!(!features.is_empty(), "{} claims nothing", path.display());
    Ok(features)
}

fn parse(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or(line).trim());
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{parse, read};
    use crate::conformance::module;

    #[test]
    fn comments_and_empty_lines_claim_nothing() {
        assert_eq!(
            parse("# All\n\nHTTPRouteCORS # since 0.2\n  Other\n"),
            ["HTTPRouteCORS", "Other"]
        );
    }

    #[test]
    fn the_file_is_sorted_and_claims_nothing_twice() {
        let features = read(&module()).unwrap();
        assert!(features.is_sorted_by(|first, second| first < second), "{features:?}");
    }
}
