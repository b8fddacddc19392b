//! Golden cases: a folder with `in.yaml`, and the IR and status it must come to.
//!
//! The first line of `in.yaml` says why the case exists. What `gone.yaml` declares was there once and is deleted before the
//! plan is made. What `unreadable.yaml` has is there and cannot be read, each object for the reason in its `error`; all that
//! is known of it is what stands there. A data plane is played by answering that every listener it is given listens. Where the second line says
//! `# cluster`, the case is planned as in a cluster, which is played, too (see `cluster.rs`), and the objects that are made
//! are in `owned.yaml`. `GOLDEN=write cargo test -p gatewright-plan` writes the expected files; read the difference before
//! you commit it.

use std::{fs, net::SocketAddr, path::Path};

use gatewright_api::{Kind, Object, ObjectName};
use gatewright_ir::{Fact, Gateway, ListenerSettings, ListenerState};
use gatewright_plan::{PlanSettings, Planner};
use gatewright_source::files::{Change, FileLoader};
use gatewright_world::{
    World,
    desired::{Stamps, Status, render},
};

use crate::cluster::Cluster;

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
        let is_cluster = input.lines().nth(1).is_some_and(|line| line.starts_with("# cluster"));
        let Made { ir, status, owned } = plan(&case, is_cluster.then(|| Cluster::new(&input)));
        let mut files = vec![("ir.yaml", ir), ("status.yaml", status)];
        files.extend(is_cluster.then_some(("owned.yaml", owned)));
        for (name, made) in files {
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

struct Made {
    ir: String,
    status: String,
    owned: String,
}

fn plan(case: &Path, mut cluster: Option<Cluster>) -> Made {
    let mut world = cluster.as_ref().map_or_else(host, |_| Cluster::world());
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
                Change::Invalid { name, error, .. } => panic!("{name}: {error}"),
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
    let unreadable = fs::read_to_string(case.join("unreadable.yaml")).unwrap_or_default();
    for document in unreadable.split("---\n").filter(|document| !document.is_empty()) {
        apply_unreadable(document, &mut world);
    }
    let settings = cluster
        .as_ref()
        .map_or_else(PlanSettings::default, |_| Cluster::settings());
    let mut planner = Planner::new(settings.clone());
    planner.update(&world, &world.everything());
    world.take_changes();
    // What is written comes back, and what then listens is written again.
    for _ in 0..3 {
        for gateway in planner.gateways().values() {
            listen(gateway, &mut world);
        }
        if let Some(cluster) = &mut cluster {
            cluster.write(&planner, &mut world);
        }
        let changes = world.take_changes();
        planner.update(&world, &changes);
    }
    if let Some(cluster) = &mut cluster {
        cluster.write(&planner, &mut world);
        assert!(
            world.take_changes().is_empty(),
            "{}: it does not settle",
            case.display()
        );
        let mut restarted = Planner::new(settings);
        restarted.update(&world, &world.everything());
        assert!(
            planner.owned().eq(restarted.owned()),
            "{}: a restart writes",
            case.display()
        );
        assert_eq!(planner.statuses(), restarted.statuses());
    }
    let ir: Vec<&Gateway> = planner.gateways().values().map(AsRef::as_ref).collect();
    let statuses: Vec<serde_json::Value> = planner
        .statuses()
        .into_iter()
        .map(|(key, status)| {
            let mut stamps = Stamps::default();
            stamps.update(&status, TIME);
            let mut rendered = render(&status, "gatewright.dev/gateway-controller", &stamps);
            strip_times(&mut rendered);
            // The same everywhere, see `features.rs`.
            if let Some(features) = rendered.get_mut("supportedFeatures") {
                assert!(features.as_array().is_some_and(|features| features.len() > 30));
                *features = "ours".into();
            }
            let name = if key.kind == Kind::GatewayClass {
                key.key.name.to_string()
            } else {
                key.key.to_string()
            };
            let mut shown = serde_json::json!({"kind": key.kind.as_str(), "name": name, "status": rendered});
            if let Status::Route(route) = &status
                && !route.dangling.is_empty()
            {
                let dangling: Vec<String> = route.dangling.iter().map(|parent| parent.name.to_string()).collect();
                shown["dangling"] = serde_json::json!(dangling);
            }
            shown
        })
        .collect();
    let owned = planner.owned().map(|(name, owned)| {
        let kept = || serde_json::json!({"kept": name.to_string()});
        owned.to_value().unwrap_or_else(kept)
    });
    let owned: Vec<serde_json::Value> = owned.collect();
    Made {
        ir: without_default_settings(&serde_saphyr::to_string(&ir).unwrap()),
        status: serde_saphyr::to_string(&statuses).unwrap(),
        owned: serde_saphyr::to_string(&owned).unwrap(),
    }
}

/// An empty world on a host that has an address.
fn host() -> World {
    let mut world = World::default();
    world.set_local("host", &["192.0.2.1".parse().unwrap()], None);
    world.take_changes();
    world
}

/// Does as the cluster's source does with an object that our types cannot read.
fn apply_unreadable(document: &str, world: &mut World) {
    let mut value: serde_json::Value = serde_saphyr::from_str(document).unwrap();
    let error = value["error"].take();
    let mut kinds = Kind::ALL.iter().copied();
    let kind = kinds.find(|kind| value["kind"] == kind.as_str()).unwrap();
    let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default().to_owned();
    let name = ObjectName {
        kind,
        namespace: text("namespace"),
        name: text("name"),
    };
    let salvaged = value["spec"]
        .is_object()
        .then(|| Object::from_value(kind, value.clone()).unwrap());
    world.apply_invalid(&name, salvaged.as_ref(), error.as_str().unwrap());
}

/// Thirty lines of settings per listener that nobody chose would hide what a case is about.
fn without_default_settings(ir: &str) -> String {
    let settings = serde_saphyr::to_string(&ListenerSettings::default()).unwrap();
    let lines = settings.trim_end().replace('\n', "\n      ");
    ir.replace(&format!("settings:\n      {lines}\n"), "settings: default\n")
}

fn listen(gateway: &Gateway, world: &mut World) {
    for listener in &gateway.listeners {
        let addresses = listener
            .addresses
            .iter()
            .map(|address| SocketAddr::new(*address, listener.bind))
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
