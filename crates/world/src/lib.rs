//! Every declared object, reduced to what planning reads, with its reverse indexes
