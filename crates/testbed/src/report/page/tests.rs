use super::write_documentation;
use crate::{
    bench::plan::SIZES,
    figures::Figures,
    peers::Peer,
    report::{Machine, TARGETS},
};

/// A figure for every name that the page may ask for.
fn figures() -> Figures {
    let mut figures = Figures::default();
    let mut add = |name: String| figures.add(name, "unit", vec![1_000.0, 2_000.0, 4_000.0]);
    for target in TARGETS {
        add(target.figure.to_owned());
    }
    for measure in [
        "requests_per_cpu_second",
        "requests_per_second",
        "p50_ms",
        "p99_ms",
        "fixed_rate_p50_us",
        "fixed_rate_p99_us",
        "rss_mb",
    ] {
        for peer in Peer::ALL {
            add(format!("proxy.h1.{measure}.{}", peer.label()));
        }
    }
    for (name, _) in super::CONNECTION_FIGURES {
        let (contest, measure) = name.split_once('.').unwrap();
        let rival = if contest == "tls" { "nginx" } else { "haproxy" };
        add(format!("proxy.{contest}.{measure}_vs_{rival}"));
        for label in ["gatewright", rival] {
            add(format!("proxy.{name}_per_cpu_second.{label}"));
        }
    }
    for (measure, _) in super::SIZE_FIGURES {
        for size in SIZES {
            add(format!("{measure}.{}", size.name));
        }
    }
    for (name, _) in super::MEMORY_FIGURES {
        add((*name).to_owned());
    }
    for name in [
        "proxy.h1.fixed_rate",
        "run.start_ms.10k",
        "run.rss_mb.10k",
        "kube.write_1k_s",
    ] {
        add(name.to_owned());
    }
    figures
}

#[test]
fn the_page_says_what_was_measured_and_every_chart_it_shows_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    write_documentation(folder.path(), &figures(), &Machine::survey(None, 3)).unwrap();
    let page = std::fs::read_to_string(folder.path().join("benchmarks.md")).unwrap();
    assert!(page.contains("| `proxy.h1.vs_envoy` |"), "{page}");
    assert!(page.contains("2,000 (1,000–4,000) **missed**"), "{page}");
    let charts: Vec<&str> = page
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect();
    assert_eq!(charts.len(), 4, "{page}");
    for chart in charts {
        let svg = std::fs::read_to_string(folder.path().join(chart)).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{chart}: {svg}");
    }
}

#[test]
fn a_part_of_a_run_makes_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let error = write_documentation(folder.path(), &Figures::default(), &Machine::survey(None, 3)).unwrap_err();
    assert!(error.to_string().contains("was not measured"), "{error}");
}
