//! Draws the parts of pictures (such as time scales) for an HTML page that has no script.

use std::fmt::Write;

use crate::escape::html;
use crate::units;

/// No times are written in the rightmost fortieth of a picture's width, because the text of a time would not fit there.
const RIGHT_EDGE: u64 = 40;

const SECOND: u64 = 1_000_000_000;
/// A picture of at least this length of time in ns has ticks at one of the distances in `CLOCK`, or, above 110 h, at a
/// larger one. A shorter picture has ticks at distances of 1, 2 or 5 times a power of ten.
const MINUTES: u64 = 90 * SECOND;
/// The distances in s between ticks. A picture of at least `MINUTES` uses the first that gives at most 11 ticks.
const CLOCK: [u64; 10] = [15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 36000];

/// Writes the times below an HTML picture that covers `whole` ns.
pub fn ticks(out: &mut String, whole: u64) {
    let clock = CLOCK.map(|seconds| seconds * SECOND);
    let fits = clock.into_iter().find(|step| whole / step <= 10);
    let [.., longest] = clock;
    let mut step = if whole < MINUTES {
        1_000
    } else {
        fits.unwrap_or(longest)
    };
    for (times, part) in [(2, 1), (5, 2), (2, 1)].into_iter().cycle() {
        if whole / step <= 10 {
            break;
        }
        step = step / part * times;
    }
    out.push_str("<svg class=\"ticks\" height=\"18\" aria-hidden=\"true\">");
    let mut at = 0;
    while at < whole - whole / RIGHT_EDGE {
        let label = match at {
            0..60_000_000_000 => format!("{} s", at as f64 / 1e9),
            _ => units::time(at),
        };
        let x = at as f64 * 100.0 / whole as f64;
        let _ = write!(out, "<text x=\"{x:.3}%\" y=\"13\">{label}</text>");
        at = at.saturating_add(step);
    }
    out.push_str("</svg>\n");
}

/// Writes a card of an HTML page: a section that has a title and the markup of a table.
pub fn card(out: &mut String, title: &str, table: &str) {
    let title = html(title);
    let _ = writeln!(
        out,
        "<section class=\"card diff\"><h2>{title}</h2>{table}</section>"
    );
}

/// The markup of the name beside a bar in an HTML picture. The name is HTML inside the SVG, because only HTML can
/// shorten a long name with an ellipsis.
pub fn name(name: &str, height: usize) -> String {
    let name = html(name);
    format!("<foreignObject width=\"100%\" height=\"{height}\"><p>{name}</p></foreignObject>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_the_units_of_times() {
        let labels = |whole: u64| {
            let mut out = String::new();
            ticks(&mut out, whole);
            let texts = out.split("\">").skip(2);
            let texts = texts.filter_map(|text| Some(text.split_once('<')?.0.to_owned()));
            texts.collect::<Vec<_>>()
        };
        assert_eq!(
            labels(11 * SECOND),
            ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]
        );
        let minutes = [
            "0 s", "30 s", "1:00 min", "1:30 min", "2:00 min", "2:30 min",
        ];
        assert_eq!(labels(170 * SECOND), minutes);
        let hours = labels(95 * 3600 * SECOND);
        assert_eq!((hours.len(), hours[1].as_str()), (10, "10:00 h"));
        assert_eq!(labels(300 * 3600 * SECOND)[1], "50:00 h");
        for whole in [u64::MAX, u64::MAX / 9 * 5, 1 << 63] {
            assert!(labels(whole).len() <= 11);
        }
    }
}
