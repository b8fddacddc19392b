//! Validation of declared objects as an API server would do it.
