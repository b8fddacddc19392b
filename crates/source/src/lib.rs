//! Where declared objects come from: a folder of YAML
