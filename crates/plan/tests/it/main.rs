//! The planner from outside: golden cases a person can read, and properties that hold for any world.

mod golden;
mod incremental;
mod universe;
