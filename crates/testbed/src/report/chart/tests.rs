use super::{Bar, Chart, LABELS, VALUES, WIDTH};

fn chart(values: &[f64]) -> Chart {
    let bar = |value: &f64| Bar {
        label: format!("a <b> & \"{value}\""),
        value: *value,
        spread: (*value * 0.9, *value * 1.1),
        is_ours: *value > 1.0,
    };
    Chart {
        title: "Requests & more".to_owned(),
        subtitle: "higher is better".to_owned(),
        bars: values.iter().map(bar).collect(),
    }
}

/// The values of an attribute in all elements of a class.
fn attributes(svg: &str, class: &str, attribute: &str) -> Vec<f64> {
    let lines = svg.lines().filter(|line| line.contains(&format!("class=\"{class}\"")));
    let values = lines.map(|line| {
        let (_, rest) = line.split_once(&format!(" {attribute}=\"")).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    });
    values.collect()
}

#[test]
fn bars_are_as_long_as_their_values_and_stay_inside() {
    let svg = chart(&[2.0, 4.0]).svg();
    let widths = attributes(&svg, "ours", "width");
    assert!((widths[1] / widths[0] - 2.0).abs() < 0.01, "{widths:?}");
    let ends = attributes(&svg, "value", "x");
    assert!(
        ends.iter().all(|end| *end > LABELS && *end < WIDTH - VALUES + 20.0),
        "{ends:?}"
    );
}

#[test]
fn text_cannot_break_out_of_its_element() {
    let svg = chart(&[1.0]).svg();
    assert!(!svg.contains("<b>"), "{svg}");
    assert!(svg.contains("a &lt;b&gt; &amp; &quot;1&quot;"), "{svg}");
    assert!(svg.contains("Requests &amp; more"), "{svg}");
}

#[test]
fn every_element_that_is_opened_is_closed() {
    let svg = chart(&[1.0, 2.0, 3.0]).svg();
    for element in ["svg", "title", "desc", "style", "text"] {
        let opened = svg.matches(&format!("<{element}")).count();
        assert_eq!(opened, svg.matches(&format!("</{element}>")).count(), "{element}");
        assert!(opened > 0, "{element}");
    }
}

#[test]
fn a_chart_without_length_is_still_a_chart() {
    let svg = chart(&[0.0]).svg();
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn readers_in_the_dark_get_light_text() {
    assert!(chart(&[]).svg().contains("prefers-color-scheme: dark"));
}
