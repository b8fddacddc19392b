//! Which version of Gateway API the cluster's definitions are of, as the source read it from them.
//!
//! With files there are no definitions, and where they may not be read nothing is known of them; both are `None`.

use std::collections::BTreeMap;

use super::World;

impl World {
    /// Takes in the definitions of Gateway API: their names, each with the version it says it is of.
    pub fn set_definitions(&mut self, definitions: BTreeMap<String, Option<String>>) {
        if self.definitions.as_ref() != Some(&definitions) {
            self.definitions = Some(definitions);
            // Classes show it, and nothing else depends on it.
            self.changes.classes.extend(self.classes.keys().cloned());
        }
    }

    /// The definitions of Gateway API, by name, each with the version it says it is of; none if they are not known.
    pub fn definitions(&self) -> Option<&BTreeMap<String, Option<String>>> {
        self.definitions.as_ref()
    }
}
