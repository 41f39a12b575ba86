//! The time axis below a picture of a page without a script.

use std::fmt::Write;

/// A tick this close to the end has no number.
const CLOSE: u64 = 40;

/// Seconds below a picture of `whole` ns.
pub fn ticks(out: &mut String, whole: u64) {
    let mut step = 1_000;
    for factor in [2, 5, 10].into_iter().cycle() {
        if whole / step <= 10 {
            break;
        }
        step = match factor {
            2 => step * 2,
            5 => step / 2 * 5,
            _ => step * 2,
        };
    }
    out.push_str("<svg class=\"ticks\" height=\"18\" aria-hidden=\"true\">");
    let mut at = 0;
    while at < whole - whole / CLOSE {
        let seconds = at as f64 / 1e9;
        let x = at as f64 * 100.0 / whole as f64;
        let _ = write!(out, "<text x=\"{x:.3}%\" y=\"13\">{seconds} s</text>");
        at += step;
    }
    out.push_str("</svg>\n");
}
