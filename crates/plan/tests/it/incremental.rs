//! Planning change by change equals planning from scratch, for any sequence of changes.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_api::config::Entry;
use gatewright_plan::{PlanSettings, Planner};
use gatewright_world::World;
use proptest::prelude::*;

use crate::universe::{Edit, base, cluster_base, edits};

/// Where the universe lies: in files, or in a cluster, where Gateways are reached through Services.
fn place(is_cluster: bool) -> (World, PlanSettings, Vec<Edit>) {
    if !is_cluster {
        return (World::default(), PlanSettings::default(), base());
    }
    let settings = PlanSettings {
        default_entry: Entry::LoadBalancer,
        allow_local_backends: false,
        ..PlanSettings::default()
    };
    let edits = base().into_iter().chain(cluster_base()).collect();
    (World::in_cluster(), settings, edits)
}

fn from_scratch(world: &World, settings: &PlanSettings) -> Planner {
    let mut planner = Planner::new(settings.clone());
    planner.update(world, &world.everything());
    planner
}

/// Keeps up with what a planner says has changed.
fn follow<K: Ord, V>(shown: &mut BTreeMap<K, V>, changes: Vec<(K, Option<V>)>) {
    for (key, value) in changes {
        match value {
            Some(value) => shown.insert(key, value),
            None => shown.remove(&key),
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn incremental_planning_equals_planning_from_scratch(is_cluster: bool, edits in edits(40), batch in 1..6usize) {
        let (mut world, settings, base) = place(is_cluster);
        let mut planner = Planner::new(settings.clone());
        let (mut shown, mut made, mut used) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let edits: Vec<Edit> = base.into_iter().chain(edits).collect();
        for edits in edits.chunks(batch) {
            for edit in edits {
                edit.make(&mut world);
            }
            let changes = world.take_changes();
            let before = planner.gateways().clone();
            let delta = planner.update(&world, &changes);
            follow(&mut shown, delta.statuses);
            follow(&mut made, delta.owned);
            for (class, is_used) in delta.classes_in_use {
                let is_news = if is_used { used.insert(class) } else { used.remove(&class) };
                prop_assert!(is_news, "only what is different is said");
            }
            let scratch = from_scratch(&world, &settings);
            prop_assert_eq!(planner.gateways(), scratch.gateways());
            let expected: BTreeMap<_, _> = scratch.statuses().into_iter().collect();
            let kept: BTreeMap<_, _> = planner.statuses().into_iter().collect();
            prop_assert_eq!(&kept, &expected);
            // Whoever follows the deltas shows the same.
            prop_assert_eq!(&shown, &expected);
            let owned = |planner: &Planner| -> BTreeMap<_, _> {
                planner.owned().map(|(name, owned)| (name.clone(), owned.clone())).collect()
            };
            prop_assert_eq!(&owned(&planner), &owned(&scratch));
            prop_assert_eq!(&made, &owned(&scratch));
            prop_assert!(used.iter().eq(scratch.classes_in_use()));
            prop_assert!(delta.gateways_changed || &before == planner.gateways(), "a plane must hear of every change");
        }
    }

    #[test]
    fn the_order_in_which_objects_arrive_does_not_matter(is_cluster: bool, edits in edits(40)) {
        let (_, settings, base) = place(is_cluster);
        let mut last: BTreeMap<String, Edit> = BTreeMap::new();
        for edit in base.into_iter().chain(edits) {
            let name = match &edit {
                Edit::Apply(kind, value) | Edit::Invalid(kind, value) => {
                    format!("{kind} {} {}", value["metadata"]["namespace"], value["metadata"]["name"])
                }
                Edit::Observe(gatewright_ir::Fact::Listener { origin, .. }) => origin.to_string(),
                Edit::Replica(name, _) => format!("replica {name}"),
                Edit::Local(_) => "this replica".to_owned(),
                Edit::Leaving => "leaving".to_owned(),
                Edit::Conflict(name, _) => name.to_string(),
                Edit::Time(_) => "the time".to_owned(),
                Edit::Observe(_) | Edit::Delete(_) => continue,
            };
            last.insert(name, edit);
        }
        let plan = |edits: &mut dyn Iterator<Item = &Edit>| {
            let (mut world, ..) = place(is_cluster);
            edits.for_each(|edit| edit.make(&mut world));
            from_scratch(&world, &settings)
        };
        let (forward, backward) = (plan(&mut last.values()), plan(&mut last.values().rev()));
        prop_assert_eq!(forward.gateways(), backward.gateways());
        prop_assert_eq!(forward.statuses(), backward.statuses());
        prop_assert!(forward.owned().eq(backward.owned()));
    }
}
