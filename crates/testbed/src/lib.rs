//! What tests, demos and benchmarks drive real programs with
