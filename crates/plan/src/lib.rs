//! World to plan: a pure function, computed incrementally
