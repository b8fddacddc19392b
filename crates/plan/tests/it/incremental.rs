//! Planning change by change equals planning from scratch, for any sequence of changes.

use std::collections::BTreeMap;

use gatewright_plan::{PlanSettings, Planner};
use gatewright_world::World;
use proptest::prelude::*;

use crate::universe::{Edit, base, edits};

fn from_scratch(world: &World) -> Planner {
    let mut planner = Planner::new(PlanSettings::default());
    planner.update(world, &world.everything());
    planner
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn incremental_planning_equals_planning_from_scratch(edits in edits(40), batch in 1..6usize) {
        let mut world = World::default();
        let mut planner = Planner::new(PlanSettings::default());
        let mut shown = BTreeMap::new();
        let edits: Vec<Edit> = base().into_iter().chain(edits).collect();
        for edits in edits.chunks(batch) {
            for edit in edits {
                edit.make(&mut world);
            }
            let changes = world.take_changes();
            let before = planner.gateways().clone();
            let delta = planner.update(&world, &changes);
            for (key, status) in delta.statuses {
                match status {
                    Some(status) => shown.insert(key, status),
                    None => shown.remove(&key),
                };
            }
            let scratch = from_scratch(&world);
            prop_assert_eq!(planner.gateways(), scratch.gateways());
            let expected: BTreeMap<_, _> = scratch.statuses().into_iter().collect();
            let kept: BTreeMap<_, _> = planner.statuses().into_iter().collect();
            prop_assert_eq!(&kept, &expected);
            // Whoever follows the deltas shows the same.
            prop_assert_eq!(&shown, &expected);
            prop_assert!(delta.gateways_changed || &before == planner.gateways(), "a plane must hear of every change");
        }
    }

    #[test]
    fn the_order_in_which_objects_arrive_does_not_matter(edits in edits(40)) {
        let mut last: BTreeMap<String, Edit> = BTreeMap::new();
        for edit in base().into_iter().chain(edits) {
            let name = match &edit {
                Edit::Apply(kind, value) => format!("{kind} {} {}", value["metadata"]["namespace"], value["metadata"]["name"]),
                Edit::Observe(gatewright_ir::Fact::Listener { origin, .. }) => origin.to_string(),
                Edit::Observe(_) | Edit::Delete(_) => continue,
            };
            last.insert(name, edit);
        }
        let plan = |edits: &mut dyn Iterator<Item = &Edit>| {
            let mut world = World::default();
            edits.for_each(|edit| edit.make(&mut world));
            from_scratch(&world)
        };
        let (forward, backward) = (plan(&mut last.values()), plan(&mut last.values().rev()));
        prop_assert_eq!(forward.gateways(), backward.gateways());
        prop_assert_eq!(forward.statuses(), backward.statuses());
    }
}
