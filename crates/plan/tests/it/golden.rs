//! Golden cases: a folder with `in.yaml`, and the IR and status it must come to.
//!
//! The first line of `in.yaml` says why the case exists. What `gone.yaml` declares was there once and is deleted before the
//! plan is made. A data plane is played by answering that every listener it is given listens. `GOLDEN=write cargo test -p
//! gatewright-plan` writes the expected files; read the difference before you commit it.

use std::{fs, net::SocketAddr, path::Path};

use gatewright_api::Kind;
use gatewright_ir::{Fact, Gateway, HttpSettings, ListenerState};
use gatewright_plan::{PlanSettings, Planner};
use gatewright_source::files::{Change, FileLoader};
use gatewright_world::{
    World,
    desired::{Stamps, Status, render},
};

const TIME: &str = "2026-01-01T00:00:00Z";

#[test]
fn every_golden_case_comes_to_its_ir_and_status() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut cases: Vec<_> = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    assert!(cases.len() >= 20, "only {} cases in {}", cases.len(), root.display());
    let mut wrong = Vec::new();
    for case in cases {
        let input = fs::read_to_string(case.join("in.yaml")).unwrap();
        assert!(input.starts_with("# "), "{} does not say why it exists", case.display());
        let (ir, status) = plan(&case);
        for (name, made) in [("ir.yaml", ir), ("status.yaml", status)] {
            let path = case.join(name);
            if std::env::var("GOLDEN").is_ok_and(|mode| mode == "write") {
                fs::write(&path, &made).unwrap();
            }
            let expected = fs::read_to_string(&path).unwrap_or_default();
            if expected != made {
                wrong.push(format!("{}\n{}", path.display(), difference(&expected, &made)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn difference(expected: &str, made: &str) -> String {
    let at = expected
        .lines()
        .zip(made.lines())
        .position(|(left, right)| left != right);
    let at = at.unwrap_or_else(|| expected.lines().count().min(made.lines().count()));
    let context = |text: &str| {
        text.lines()
            .skip(at.saturating_sub(2))
            .take(6)
            .collect::<Vec<_>>()
            .join("\n")
    };
    format!(
        "line {}\n--- expected\n{}\n--- made\n{}",
        at + 1,
        context(expected),
        context(made)
    )
}

fn plan(case: &Path) -> (String, String) {
    let mut world = World::default();
    let time = TIME.parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut loader = FileLoader::new(folder.path(), Box::new(move || time)).unwrap();
    let mut load = |world: &mut World| {
        let batch = loader.scan();
        let errors: Vec<String> = batch.problems.iter().map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{}:\n{}", case.display(), errors.join("\n"));
        for change in batch.changes {
            match change {
                Change::Apply(object) => world.apply(&object),
                Change::Delete(name) => world.delete(&name),
            }
        }
    };
    fs::copy(case.join("in.yaml"), folder.path().join("in.yaml")).unwrap();
    if case.join("gone.yaml").exists() {
        fs::copy(case.join("gone.yaml"), folder.path().join("gone.yaml")).unwrap();
        load(&mut world);
        fs::remove_file(folder.path().join("gone.yaml")).unwrap();
    }
    load(&mut world);
    let mut planner = Planner::new(PlanSettings::default());
    planner.update(&world, &world.everything());
    world.take_changes();
    for gateway in planner.gateways().values() {
        listen(gateway, &mut world);
    }
    let facts = world.take_changes();
    planner.update(&world, &facts);
    let ir: Vec<&Gateway> = planner.gateways().values().map(AsRef::as_ref).collect();
    let statuses: Vec<serde_json::Value> = planner
        .statuses()
        .into_iter()
        .map(|(key, status)| {
            let mut stamps = Stamps::default();
            stamps.update(&status, TIME);
            let mut rendered = render(&status, "gatewright.dev/gateway-controller", &stamps);
            strip_times(&mut rendered);
            let name = if key.kind == Kind::GatewayClass {
                key.key.name.to_string()
            } else {
                key.key.to_string()
            };
            let mut shown = serde_json::json!({"kind": key.kind.as_str(), "name": name, "status": rendered});
            if let Status::HttpRoute(route) = &status
                && !route.dangling.is_empty()
            {
                let dangling: Vec<String> = route.dangling.iter().map(|parent| parent.name.to_string()).collect();
                shown["dangling"] = serde_json::json!(dangling);
            }
            shown
        })
        .collect();
    (
        without_default_settings(&serde_saphyr::to_string(&ir).unwrap()),
        serde_saphyr::to_string(&statuses).unwrap(),
    )
}

/// Thirty lines of settings per listener that nobody chose would hide what a case is about.
fn without_default_settings(ir: &str) -> String {
    let settings = serde_saphyr::to_string(&HttpSettings::default()).unwrap();
    let lines = settings.trim_end().replace('\n', "\n      ");
    ir.replace(&format!("settings:\n      {lines}\n"), "settings: default\n")
}

fn listen(gateway: &Gateway, world: &mut World) {
    for listener in &gateway.listeners {
        let addresses = listener
            .addresses
            .iter()
            .map(|address| SocketAddr::new(*address, listener.port))
            .collect();
        world.observe(Fact::Listener {
            origin: listener.origin.clone(),
            generation: gateway.generation,
            state: ListenerState::Listening(addresses),
        });
    }
}

/// Every condition has the same time here; it would only hide what matters.
fn strip_times(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            assert!(fields.get("lastTransitionTime").is_none_or(|time| time == TIME));
            fields.remove("lastTransitionTime");
            fields.values_mut().for_each(strip_times);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(strip_times),
        _ => {}
    }
}
