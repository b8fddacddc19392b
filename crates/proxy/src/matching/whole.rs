//! The routes of a listener whose connections or datagrams are routed as a whole: by the name that was asked for, if any.
//!
//! There are no conditions beyond the host, so the first entry of the most specific host gets everything. Follows changes
//! of the IR like [`ListenerTable`](super::ListenerTable): what did not change is not compiled again.

use std::sync::Arc;

use gatewright_ir::{Host, HostPattern, Listener, Rule};
use imbl::{OrdMap, ordmap::DiffItem};

use super::{hosts::HostMap, rule::CompiledRule};

/// Which rule a connection belongs to.
#[derive(Clone)]
pub(crate) struct WholeTable {
    /// What this was compiled from; the next compilation compares with it.
    source: OrdMap<HostPattern, Arc<Host>>,
    hosts: HostMap<Arc<CompiledRule>>,
}

impl WholeTable {
    /// Compiles a listener. Given the table of an earlier version, it compiles what changed and shares the rest.
    pub(crate) fn compile(listener: &Listener, previous: Option<&Self>) -> Self {
        let mut table = previous.cloned().unwrap_or_else(|| Self {
            source: OrdMap::new(),
            hosts: HostMap::new(),
        });
        let source = std::mem::replace(&mut table.source, listener.hosts.clone());
        for change in source.diff(&listener.hosts) {
            match change {
                DiffItem::Add(pattern, host)
                | DiffItem::Update {
                    new: (pattern, host), ..
                } => {
                    table.follow(pattern, host);
                }
                DiffItem::Remove(pattern, _) => _ = table.hosts.remove(pattern),
            }
        }
        table
    }

    /// The rule of the most specific host that holds a name, or that holds none at all.
    pub(crate) fn find(&self, name: Option<&str>) -> Option<&Arc<CompiledRule>> {
        self.hosts.holding(name.unwrap_or_default()).next()
    }

    fn follow(&mut self, pattern: &HostPattern, host: &Host) {
        let before = self.hosts.remove(pattern);
        let Some(entry) = host.entries.iter().next() else {
            return;
        };
        let is_same = |compiled: &Arc<CompiledRule>| Arc::ptr_eq(&compiled.rule, &entry.rule);
        let compile = |rule: &Arc<Rule>| Arc::new(CompiledRule::compile(rule));
        let compiled = before.filter(is_same).unwrap_or_else(|| compile(&entry.rule));
        self.hosts.insert(pattern, compiled);
    }
}
