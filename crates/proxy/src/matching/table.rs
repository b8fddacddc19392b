//! The routing table of one listener, and how it follows changes of the IR.

use std::sync::Arc;

use ahash::AHashMap;
use gatewright_ir::{Entry, EntryChange, Host, HostPattern, Listener, Rule};
use imbl::{OrdMap, ordmap::DiffItem};

use super::{
    entry::CompiledEntry,
    hosts::HostMap,
    index::HostTable,
    patterns::Patterns,
    request::{RequestView, Subject},
    rule::CompiledRule,
};

/// Which entry of a listener a request belongs to.
#[derive(Clone)]
pub(crate) struct ListenerTable {
    /// What this was compiled from; the next compilation compares with it.
    source: OrdMap<HostPattern, Arc<Host>>,
    hosts: HostMap<Arc<HostTable>>,
    patterns: Patterns,
}

impl ListenerTable {
    /// A table that no request belongs to.
    pub(crate) fn empty() -> Self {
        Self {
            source: OrdMap::new(),
            hosts: HostMap::new(),
            patterns: Patterns::default(),
        }
    }

    /// Compiles a listener. Given the table of an earlier version, it compiles what changed and shares the rest.
    pub(crate) fn compile(listener: &Listener, previous: Option<&Self>) -> Self {
        let mut table = previous.cloned().unwrap_or_else(Self::empty);
        let source = std::mem::replace(&mut table.source, listener.hosts.clone());
        let nothing = Host::default();
        let mut rules = Rules::default();
        for change in source.diff(&listener.hosts) {
            match change {
                DiffItem::Add(pattern, host) => table.follow(pattern, &nothing, host, &mut rules),
                DiffItem::Remove(pattern, host) => table.follow(pattern, host, &nothing, &mut rules),
                DiffItem::Update { old, new } => table.follow(new.0, old.1, new.1, &mut rules),
            }
        }
        table
    }

    /// The entry a request belongs to. When no entry of a host is met, the next less specific host is asked.
    pub(crate) fn find(&self, request: &impl RequestView) -> Option<&Arc<CompiledEntry>> {
        let subject = Subject::new(request);
        self.hosts.holding(request.host()).find_map(|host| host.find(&subject))
    }

    /// Changes one host from what it was to what it is.
    fn follow(&mut self, pattern: &HostPattern, old: &Host, new: &Host, rules: &mut Rules) {
        let mut host = self.hosts.remove(pattern).unwrap_or_else(|| Arc::new(HostTable::new()));
        let table = Arc::make_mut(&mut host);
        for change in old.entries.diff(&new.entries) {
            let (gone, come) = match change {
                EntryChange::Added(entry) => (None, Some(entry)),
                EntryChange::Removed(entry) => (Some(entry), None),
                EntryChange::Replaced { old, new } => (Some(old), Some(new)),
            };
            // The new first: patterns that both use are not compiled again.
            let come = come.map(|entry| Arc::new(self.compile_entry(entry, rules)));
            if let Some(entry) = gone {
                table.remove(entry);
                self.patterns.release(&entry.matches);
            }
            if let Some(entry) = come {
                table.insert(entry);
            }
        }
        if !new.entries.is_empty() {
            self.hosts.insert(pattern, host);
        }
    }

    fn compile_entry(&mut self, entry: &Arc<Entry>, rules: &mut Rules) -> CompiledEntry {
        CompiledEntry::compile(entry, rules.compile(&entry.rule), &mut self.patterns)
    }

    /// How many distinct patterns are held.
    #[cfg(test)]
    pub(super) fn patterns(&self) -> usize {
        self.patterns.len()
    }
}

/// The rules compiled in one go. The matches of a rule, on all its hosts, arrive together and share what is compiled.
#[derive(Default)]
struct Rules(AHashMap<usize, Arc<CompiledRule>>);

impl Rules {
    fn compile(&mut self, rule: &Arc<Rule>) -> Arc<CompiledRule> {
        // A compiled rule keeps its source alive, so that no other rule can come to have this address meanwhile.
        let address = Arc::as_ptr(rule).addr();
        let compiled = self.0.entry(address);
        compiled
            .or_insert_with(|| Arc::new(CompiledRule::compile(rule)))
            .clone()
    }
}
