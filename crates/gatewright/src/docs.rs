//! Pages of the documentation that are made from code: the hidden command `gatewright docs PAGE` prints one.
//!
//! `make gen` writes them; a test holds the committed pages equal to what is printed.

mod codes;
mod metrics;

use clap::ValueEnum;

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Page {
    /// docs/codes.md
    Codes,
    /// docs/metrics.md
    Metrics,
}

/// The text of a page.
pub(crate) fn markdown(page: Page) -> String {
    match page {
        Page::Codes => codes::markdown(),
        Page::Metrics => metrics::markdown(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Page, markdown};

    #[test]
    fn committed_pages_are_what_the_code_says() {
        let committed = [
            (Page::Codes, include_str!("../../../docs/codes.md")),
            (Page::Metrics, include_str!("../../../docs/metrics.md")),
        ];
        for (page, text) in committed {
            assert!(
                markdown(page) == text,
                "docs of {page:?} are out of date: run `make gen`"
            );
        }
    }
}
