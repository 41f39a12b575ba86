//! The parts that reports are made of: text, units, tables, histograms, labels.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)] // of our own tables, in a test

use serde_json::json;
use tr_format::event::{Argv, Comm};
use tr_insight::views::members::Collect;
use tr_insight::waits::hist::{Hist, Length};
use tr_programs::command_line::{label_of, program_of};
use tr_report::hist::draw;
use tr_text::escape::{command, text};
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table};
use tr_text::units::{count, date, days, pad, share, shorten, time};

const STYLE: Style = Style {
    width: 80,
    color: false,
    ascii: false,
    markdown: false,
};

#[test]
fn nothing_reaches_the_terminal_as_a_command() {
    assert_eq!(text(b"a\x1b[31mb"), "a\\u{1b}[31mb");
    assert_eq!(text("\u{9b}x\u{202e}y".as_bytes()), "\\u{9b}x\\u{202e}y");
    assert_eq!(text(b"ok\xff\n"), "ok\\xff\\n");
    assert_eq!(text("naïve".as_bytes()), "naïve");
}

#[test]
fn command_lines_show_where_arguments_end() {
    assert_eq!(command([&b"sh"[..], b"-c", b"a b"]), "sh -c 'a b'");
    assert_eq!(command([&b""[..], b"it's"]), "'' \"it's\"");
}

#[test]
fn times_have_the_unit_that_fits() {
    let cases = [
        (0, "–"),
        (7, "7 ns"),
        (1_500, "1.5 µs"),
        (31_000_000, "31 ms"),
        (980_000_000, "980 ms"),
        (11_380_000_000, "11.38 s"),
        (61_000_000_000, "1:01 min"),
        (7_260_000_000_000, "2:01 h"),
    ];
    for (ns, shown) in cases {
        assert_eq!(time(ns), shown);
    }
}

#[test]
fn dates() {
    assert_eq!(date(None), "time of day unknown");
    assert_eq!(days(1970, 1, 1), 0);
    // The day begins 951,782,400 s after the beginning of 1970, which is the following number of days.
    assert_eq!(days(2000, 2, 29), 11_016);
    assert_eq!(date(Some(0)), "1970-01-01 00:00 UTC");
    assert_eq!(date(Some(951_782_400_000_000_000)), "2000-02-29 00:00 UTC");
    assert_eq!(
        date(Some(1_795_227_240_000_000_000)),
        "2026-11-21 02:14 UTC"
    );
}

#[test]
fn long_texts_lose_their_middle() {
    assert_eq!(shorten("abcdefghij", 10), "abcdefghij");
    assert_eq!(shorten("abcdefghijk", 7), "abc…ijk");
    assert_eq!(shorten("日本語日本語", 7), "日…語", "two columns each");
    assert_eq!(pad("ab", 4, true), "  ab");
    assert_eq!(count(1_234_567), "1,234,567");
    assert_eq!(
        (share(1, 3), share(1, 1000), share(0, 0)),
        ("33 %".into(), "<1 %".into(), "–".into())
    );
}

#[test]
fn bars_end_at_eighths_or_at_whole_characters() {
    let fine = STYLE;
    let plain = Style {
        ascii: true,
        markdown: false,
        ..STYLE
    };
    let both = |part| (fine.bar(part, 80, 10), plain.bar(part, 80, 10));
    assert_eq!(both(80), ("█".repeat(10), "#".repeat(10)));
    assert_eq!(both(12), ("█▌".into(), "##".into()));
    assert_eq!(both(1), ("▏".into(), "#".into()), "little is not nothing");
    assert_eq!(both(0), (String::new(), String::new()));
    assert_eq!(fine.bar(1, 0, 10), "▏", "a part of nothing");
}

/// A histogram of lengths in nanoseconds. The flag says whether the beginning and the end of the length are known.
fn hist(lengths: impl IntoIterator<Item = (u64, bool)>) -> Hist {
    let mut hist = Hist::default();
    for (ns, whole) in lengths {
        let cpu = None;
        hist.add(&Length { ns, whole, cpu });
    }
    hist.finish();
    hist
}

#[test]
fn rows_are_powers_of_two_as_bcc_has_them() {
    let us = [0, 1, 2, 3, 4, 7, 8, 9];
    let hist = hist(us.map(|us| (us * 1000 + 999, true)));
    let rows: Vec<_> = hist.slots();
    let rows: Vec<_> = rows.iter().map(|s| (s.from_us, s.to_us, s.count)).collect();
    assert_eq!(rows, [(0, 1, 2), (2, 3, 2), (4, 7, 2), (8, 15, 2)]);
    let sum: u64 = hist.slots().iter().map(|slot| slot.ns).sum();
    assert_eq!(sum, hist.total());
    let style = Style {
        ascii: true,
        markdown: false,
        ..STYLE
    };
    let mut page = Page::new();
    draw(&hist, &mut page, &style);
    let drawn = page.text(&style);
    assert_eq!(
        drawn.lines().nth(2),
        Some("         2 -> 3          : 2        |****************************************|"),
        "column by column as print_log2_hist"
    );
    assert!(drawn.lines().all(|line| line.len() <= 80));
}

#[test]
fn quantiles_are_lengths_that_were_there() {
    let hist = hist((1..=10).map(|ns| (ns, true)).chain([(99, false)]));
    let quantiles = [1, 500, 501, 900, 1000].map(|q| hist.quantile(q));
    assert_eq!(quantiles, [1, 5, 6, 9, 10].map(Some));
    assert_eq!((hist.total(), hist.cut()), (55, (1, 99)));
    assert_eq!(Hist::default().quantile(500), None);
    assert!(Hist::default().slots().is_empty());
}

#[test]
fn scripts_are_one_short_line() {
    let script = format!("set -e\n\techo {}\nlast", "x ".repeat(3000));
    let argv = Argv::from_args(["sh", "-c", &script]);
    let label = label_of(&argv, &Comm::default(), true);
    assert!(label.starts_with("sh -c 'set -e echo x x "), "{label}");
    assert!(
        label.ends_with("' (forked)") && label.len() < 120,
        "{label}"
    );
}

#[test]
fn hostile_command_lines_are_escaped_and_end() {
    let sh: Vec<&[u8]> = std::iter::repeat_n(&b"sh"[..], 5000).collect();
    let label = label_of(&Argv::from_args(sh), &Comm::default(), false);
    assert!(
        label.starts_with("sh sh"),
        "interpreters are not followed for ever"
    );
    for args in [
        vec![&b"/bin/\x1b[2Jx"[..], b"\x9b"],
        vec![b"sh", b"-c", b"a\x1b]0;x\x07b \xe2\x80\xae"],
        vec![b"git", b"cl\x1bone", b"\xff"],
        vec![b"python3", b"-m", b"\x1bm", b"\n"],
        vec![b"gcc", b"-o", b"\x1b[1mx"],
        vec![b"java", b"a.\x1bb"],
        vec![b""],
        vec![b"sh", b"-c"],
    ] {
        let argv = Argv::from_args(args);
        let comm = Comm::new(b"\x1b");
        for text in [
            program_of(&argv, &comm).to_string(),
            label_of(&argv, &comm, false),
        ] {
            let bad = |c: char| c.is_control() || c == '\u{202e}';
            let mut page = Page::new();
            page.line(&text);
            let shown = page.text(&STYLE);
            assert!(
                !text.is_empty() && !shown.trim_end().contains(bad),
                "{shown:?}"
            );
        }
    }
}

#[test]
fn people_see_units_and_columns() {
    let rows = [
        (Cell::Time(1_500_000_000), "a", "make, \"all\""),
        (Cell::Unknown, "long", "a name of more than twenty columns"),
    ];
    type Row = (Cell, &'static str, &'static str);
    let table = Table::new("process", |(.., name): &Row| (*name).to_owned())
        .column("CPU", |(time, ..)| time.clone())
        .column("", |_| Cell::Empty)
        .column("hidden", |_| Cell::Count(1))
        .shown(false)
        .words("why", |(_, why, _)| Cell::from(*why))
        .paint(|(time, ..)| Paint::bad_if(*time == Cell::Unknown));
    let mut page = Page::new();
    page.grid(table.grid(rows), 1);
    let text = page.text(&Style {
        width: 30,
        color: true,
        ..STYLE
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "\u{1b}[1m    CPU  why   process\u{1b}[0m",
            " 1.50 s  a     make, \"all\"",
            "\u{1b}[31m      ?  long  a name …columns\u{1b}[0m"
        ]
    );
}

#[test]
fn one_declaration_makes_every_form() {
    type Row = (Option<u64>, u64, &'static str);
    let table = || {
        Table::new("process", |(.., name): &Row| (*name).to_owned())
            .named("label")
            .csv_key("name")
            .fact("pid", "pid", |(_, faults, _)| Cell::Id(*faults as u32 + 7))
            .place(1)
            .fact("CPU", "on_cpu_ns", |(ns, ..)| Cell::known(*ns, Cell::Time))
            .fact("major", "major_faults", |(_, it, _)| Cell::Count(*it))
            .few()
            .place(0)
            .column("half", |(_, it, _)| Cell::Share(*it, 2))
            .csv_data("whole", |(ns, ..)| ns.is_some())
            .json_data("of", |_| vec![1, 2])
    };
    let rows: [Row; 2] = [(Some(1_500_000_000), 1, "make, \"<all>\""), (None, 0, "x")];
    let mut page = Page::new();
    page.table(&table(), rows);
    let text = page.text(&STYLE);
    let lines: Vec<&str> = text.lines().collect();
    let head = "   CPU  half  major  pid  process";
    let first = "1.50 s  50 %      1    8  make, \"<all>\"";
    assert_eq!(lines, [head, first, "     ?   0 %           7  x"]);
    let csv = String::from_utf8(table().sheet(rows).csv().unwrap()).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    let head = "name,pid,on_cpu_ns,major_faults,whole";
    let first = "\"make, \"\"<all>\"\"\",8,1500000000,1,1";
    assert_eq!(lines, [head, first, "x,7,,0,0"]);
    let value = json!({
        "label": "x", "pid": 7, "on_cpu_ns": null, "major_faults": 0, "of": [1, 2],
    });
    assert_eq!(table().json(&rows[1]), value);
    let comment = table().grid(rows).comment();
    let lines: Vec<&str> = comment.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "| process | CPU | half | major | pid |",
            "| --- | ---: | ---: | ---: | ---: |"
        ]
    );
    assert_eq!(lines[3], "| <code>x</code> | ? | 0 % |  | 7 |");
    let page = table().grid(rows).html();
    assert!(page.contains("<th class=\"num\">major</th>"), "{page}");
    assert!(
        page.contains("make, &quot;&lt;all&gt;&quot;") && !page.contains("<all>"),
        "{page}"
    );
    // The CSV with the rows of several tables has the columns of all these tables.
    let other = Table::new("", |_: &u64| String::new())
        .data("size_bytes", |size| *size)
        .data("pid", |_| 1);
    let mut sheet = Sheet::new([table().keys(), other.keys()]);
    sheet.add(&table(), &rows[1]);
    sheet.add(&other, &3);
    let csv = String::from_utf8(sheet.csv().unwrap()).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    let head = "name,pid,on_cpu_ns,major_faults,whole,size_bytes";
    assert_eq!(lines, [head, "x,7,,0,0,", ",1,,,,3"]);
    assert!(Sheet::default().csv().unwrap().is_empty());
}
