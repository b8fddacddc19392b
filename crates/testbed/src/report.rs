//! What a run found, for people: a table for the terminal, a page with charts for the documentation.

mod chart;
mod machine;
mod number;
mod page;
mod table;
mod targets;

pub use chart::{Bar, Chart};
pub use machine::Machine;
pub use page::write_documentation;
pub use table::table;
pub use targets::{TARGETS, Target};
