//! Unit tests of `lanes`.

use super::*;

fn bar(from: u64, to: u64, program: &str) -> Bar {
    Bar {
        from,
        to,
        program: ProgramName::new(program),
        label: vec![program.to_owned(), from.to_string()],
        states: [to - from, 0, 0, 0, 0],
    }
}

fn axis() -> Axis<'static> {
    Axis {
        whole: 1_000_000,
        ranks: BTreeMap::new(),
        others: false,
    }
}

#[test]
fn the_legend_names_the_programs_with_a_colour() {
    let names = ["a<b", "cc1"].map(ProgramName::new);
    let ranks = names.iter().zip([1, 0]).collect();
    let mut out = String::new();
    let axis = Axis {
        ranks,
        others: true,
        ..axis()
    };
    axis.legend(&mut out);
    let keys: Vec<&str> = out.split("</span>").collect();
    assert_eq!(
        keys,
        [
            "<span class=\"key\"><i class=\"swatch path-job p0\"></i>cc1",
            "<span class=\"key\"><i class=\"swatch path-job p1\"></i>a&lt;b",
            "<span class=\"key\"><i class=\"swatch job-beside\"></i>others",
            ""
        ]
    );
}

#[test]
fn those_at_once_have_lanes_of_their_own() {
    let bars = [
        bar(0, 400_000, "a"),
        bar(100_000, 200_000, "b"),
        bar(200_000, 500_000, "c"),
        bar(400_000, 500_000, "d"),
    ];
    let (lanes, left_out) = axis().pack(&bars);
    let name = |bar: &Drawn<'_>| bar.name().join(" ");
    let names = |lane: &Vec<Drawn<'_>>| lane.iter().map(name).collect::<Vec<_>>();
    let names: Vec<_> = lanes.iter().map(names).collect();
    assert_eq!(names, [["a 0", "d 400000"], ["b 100000", "c 200000"]]);
    assert_eq!(left_out, 0);
}

/// A part of a label, such as the text of a script, may contain spaces. The layout of the label does not divide such a
/// part.
#[test]
fn the_last_part_of_a_name_stays_in_a_narrow_bar() {
    let markup = |parts: &[&str]| {
        let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        name_beside_bar(&parts, BAR)
    };
    let ends = |parts, end: &str| markup(parts).contains(end);
    assert!(ends(
        &["cc1", "-E", "a.c"],
        "<span>cc1 -E </span><span><span>a.c</span></span>"
    ));
    assert!(ends(
        &["sh -c", "make -j 4"],
        "<span>sh -c </span><span><span>make -j 4</span></span>"
    ));
    assert!(ends(
        &["server postgres (shared)"],
        "<p>server postgres (shared)</p>"
    ));
}

#[test]
fn short_neighbours_are_one_bar() {
    // The last bar of the program `true` is far from the other bars of this program.
    let mut bars: Vec<Bar> = (0..50)
        .map(|n| bar(n * 1000, n * 1000 + 900, "true"))
        .collect();
    bars.push(bar(100_000, 100_900, "true"));
    bars.push(bar(101_000, 101_900, "false"));
    let axis = axis();
    let (lanes, _) = axis.pack(&bars);
    let [lane] = lanes.as_slice() else {
        panic!("{lanes:?}");
    };
    let drawn: Vec<_> = lane
        .iter()
        .map(|it| (it.name().join(" "), it.from, it.to))
        .collect();
    assert_eq!(
        drawn,
        [
            ("50 × true".into(), 0, 49_900),
            ("2 processes".into(), 100_000, 101_900)
        ]
    );
}

#[test]
fn those_beyond_the_last_lane_are_counted() {
    let bars: Vec<Bar> = (0..50).map(|n| bar(n, 500_000, "cc1")).collect();
    let (lanes, left_out) = axis().pack(&bars);
    assert_eq!((lanes.len(), left_out), (LANES, 50 - LANES));
}
