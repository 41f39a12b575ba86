//! Unit tests of the page of `tr diff`.

use super::*;
use crate::diff::machine::tests::run as of;
use crate::diff::run::Bar;
use crate::diff::Ask;
use tr_programs::program_name::ProgramName;

const SECOND: u64 = 1_000_000_000;

/// A run with a wall time of `wall` seconds. One process is on its critical path, and is named after the file.
fn run(file: &str, wall: u64) -> Run {
    let bar = Bar {
        from: 0,
        to: wall * SECOND,
        program: ProgramName::new("cc1"),
        label: vec!["cc1".into(), "of".into(), file.into()],
        states: [wall * SECOND, 0, 0, 0, 0],
    };
    Run {
        file: file.into(),
        path: vec![bar.clone()],
        timeline: vec![bar],
        ..of([wall, wall, 10, 5])
    }
}

fn page(base: Vec<Run>, new: Vec<Run>) -> String {
    let ask = Ask {
        top: 9,
        least: 1,
        gate: None,
        strict: false,
    };
    render(&crate::diff::compare(base, new, ask))
}

#[test]
fn pictures_are_of_the_run_nearest_to_the_median() {
    let base = [("b-1", 90), ("b-2", 50), ("b-3", 51), ("b-4", 10)];
    let new = [("n-1", 10), ("n-2", 80), ("n-3", 79)];
    let runs = |all: &[(&str, u64)]| all.iter().map(|(file, wall)| run(file, *wall)).collect();
    let page = page(runs(&base), runs(&new));
    let pictures = page.split("<h2>Timelines").nth(1).unwrap();
    let pictures = pictures.split("</section>").next().unwrap();
    for (file, is_shown) in [
        ("b-1", false),
        ("b-2", true),
        ("b-3", false),
        ("b-4", false),
        ("n-1", false),
        ("n-2", false),
        ("n-3", true),
    ] {
        let bar = format!("cc1 of {file}");
        assert_eq!(pictures.contains(&bar), is_shown, "{file}: {pictures}");
    }
    assert!(pictures.contains("nearest to its median"));
    for (file, wall) in [("b-2", 50), ("n-3", 79)] {
        let bold = format!("<b>{file} {}</b>", units::time(wall * SECOND));
        assert!(page.contains(&bold), "{bold}: {page}");
    }
}

#[test]
fn pictures_of_two_runs_a_side_differ_as_the_medians_do() {
    // The medians are 57 s and 49 s; the first runs of both sides alone would show a slower new side.
    let base = vec![run("b-1", 48), run("b-2", 66)];
    let new = vec![run("n-1", 50), run("n-2", 48)];
    let page = page(base, new);
    let pictures = page.split("<h2>Timelines").nth(1).unwrap();
    for (file, is_shown) in [("b-1", false), ("b-2", true), ("n-1", true), ("n-2", false)] {
        let bar = format!("cc1 of {file}");
        assert_eq!(pictures.contains(&bar), is_shown, "{file}");
    }
}

#[test]
fn a_run_leads_to_its_page() {
    let with = |link: Option<&str>| {
        let mut base = run("b<1>.bin", 50);
        base.link = link.map(str::to_owned);
        page(vec![base], vec![run("n.bin", 70)])
    };
    let linked = with(Some("../b%3C1%3E.html?\"&x"));
    assert_eq!(
        linked
            .matches("<a href=\"../b%3C1%3E.html?&quot;&amp;x\">b&lt;1&gt;.bin</a>")
            .count(),
        2,
        "in the list of runs and beside its picture: {linked}"
    );
    assert!(!with(None).contains("<a "));
}

/// The page begins with the conclusion in one sentence. Then come the parts of the difference, the pictures, and the
/// tables.
#[test]
fn the_page_opens_on_what_changed() {
    let mut sides = [run("b", 50), run("n", 90)];
    for run in &mut sides {
        let wall = run.figures.get(Figure::Wall).unwrap();
        let mut parts = crate::diff::parts::Parts::default();
        parts.times.add(crate::diff::parts::WallPart::Work, wall);
        run.parts = Some(parts);
    }
    let [base, new] = sides;
    let page = page(vec![base], vec![new]);
    let order = [
        "<h1>Slower",
        "class=\"dim runs\"",
        "Wall time, by",
        "Timelines",
        "Wall time and sums",
    ];
    let places = order.map(|text| page.find(text).unwrap_or_else(|| panic!("{text}: {page}")));
    assert!(places.is_sorted(), "{places:?}");
}
