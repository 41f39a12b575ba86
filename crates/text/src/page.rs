//! Represents a report as blocks of coloured text (spans), which renderers for a terminal and for Markdown
//! escape, wrap and align.

use std::fmt::Write;

use crate::style::{Paint, Style};
use crate::table::{Grid, Table, Title};
use crate::{escape, units};

/// A piece of a page's text that has one colour. A renderer escapes the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub paint: Paint,
    pub text: String,
}

impl Span {
    pub fn new(paint: Paint, text: impl Into<String>) -> Span {
        let text = text.into();
        Span { paint, text }
    }

    fn width(&self) -> usize {
        units::width(&self.text)
    }
}

impl From<String> for Span {
    fn from(text: String) -> Span {
        Span::new(Paint::Plain, text)
    }
}

impl From<&String> for Span {
    fn from(text: &String) -> Span {
        Span::new(Paint::Plain, text)
    }
}

impl From<&str> for Span {
    fn from(text: &str) -> Span {
        Span::new(Paint::Plain, text)
    }
}

/// A part of a page, such as a line, a text or a table. A renderer decides where its lines end.
#[derive(Clone, Debug)]
enum Block {
    /// One line of a page. The line is not wrapped, however wide it is.
    Line(Vec<Span>),
    /// A text that follows a lead (the words at the start of its first line). The text takes as many lines as it
    /// needs, or is shortened to the length of `most` full lines.
    Text {
        lead: Span,
        text: Vec<Span>,
        most: Option<usize>,
    },
    /// Several items that follow a lead (the words at the start of the first line), in as many lines as they
    /// need.
    Items {
        lead: Span,
        items: Vec<Span>,
    },
    /// A line with a name on the left and items on the right. If both do not fit into the line, each gets lines
    /// of its own.
    Head {
        name: Span,
        items: Vec<Span>,
    },
    /// A single line in which the name is shortened to the width that the rest of the line leaves, but to no less than
    /// `least` columns.
    Named {
        before: Vec<Span>,
        name: Span,
        least: usize,
        after: Vec<Span>,
    },
    Bars(Bars),
    Table {
        grid: Grid,
        indent: usize,
    },
}

/// A block of a page with one line for each name. The line has the name, a bar for a time, the time and a note.
#[derive(Clone, Debug)]
pub struct Bars {
    /// The lines of the block of bars, in the order of their times, the longest first.
    pub rows: Vec<BarRow>,
    /// The time in ns that is 100 % beside the bars. A full bar stands for the time of the first row.
    pub whole: u64,
    /// The largest width in columns of the names in the block of bars. Longer names are shortened.
    pub name: usize,
    /// The number of columns that each line of the block keeps for everything but its name and its bar.
    pub beside: usize,
}

/// A line of a block of bars ([`Bars`]): a name, a time that is drawn as a bar, and a note.
#[derive(Clone, Debug)]
pub struct BarRow {
    pub name: String,
    /// The time in ns that this line of a block of bars shows by its bar.
    pub time: u64,
    /// The words at the end of this line of a block of bars, after the time, such as a count.
    pub note: String,
}

/// One line of a page as a renderer lays it out: its pieces of text with their colours.
type Line = Vec<Span>;

/// The number of full lines to whose length a longer sentence is shortened. Because lines end between words, the
/// shortened sentence may take one line more.
const SENTENCE: usize = 3;

/// The text that separates two items in one line of a page.
const ITEM_SEPARATOR: &str = " · ";

/// A report, or a part of one, as blocks of text before a renderer writes them.
#[derive(Clone, Debug, Default)]
pub struct Page {
    blocks: Vec<Block>,
}

impl Page {
    pub fn new() -> Page {
        Page::default()
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Adds the blocks of another page to the end of this one.
    pub fn add(&mut self, page: Page) {
        self.blocks.extend(page.blocks);
    }

    /// Adds an empty line to the page.
    pub fn blank(&mut self) {
        self.blocks.push(Block::Line(Vec::new()));
    }

    /// Adds one line to the page. The line is not wrapped.
    pub fn spans<S: Into<Span>>(&mut self, spans: impl IntoIterator<Item = S>) {
        let spans = spans.into_iter().map(Into::into);
        self.blocks.push(Block::Line(spans.collect()));
    }

    /// Adds one line in one colour to the page. The line is not wrapped.
    pub fn painted(&mut self, paint: Paint, text: &str) {
        self.spans([Span::new(paint, text)]);
    }

    /// Adds a text of any length to the page, in one colour. `lead` is the words before the text. Further lines are
    /// indented by the width of these words.
    pub fn wrapped(&mut self, paint: Paint, lead: &str, text: &str) {
        self.led(Span::new(paint, lead), Span::new(paint, text));
    }

    /// Adds a text of any length to the page. `lead` is the words before the text. Further lines are indented by the
    /// width of these words.
    pub fn led(&mut self, lead: Span, text: Span) {
        let (text, most) = (vec![text], None);
        self.blocks.push(Block::Text { lead, text, most });
    }

    /// Adds a sentence to the page, in several lines if necessary, so that no figure in it is cut off. A very long
    /// sentence, for example with a command line, is shortened in the middle.
    pub fn line(&mut self, text: &str) {
        self.sentence("", text);
    }

    /// Adds a sentence to the page, in at most a few lines. `lead` is the words that stand before it.
    pub fn sentence(&mut self, lead: &str, text: &str) {
        self.painted_sentence(Paint::Plain, lead, text);
    }

    /// Adds a sentence in one colour to the page, in at most a few lines. `lead` is the words that stand before
    /// it.
    pub fn painted_sentence(&mut self, paint: Paint, lead: &str, text: &str) {
        self.blocks.push(Block::Text {
            lead: Span::new(paint, lead),
            text: vec![Span::new(paint, text)],
            most: Some(SENTENCE),
        });
    }

    /// Adds a line to the page that says how many of `all` rows are not shown. Nothing is added if all are
    /// shown.
    pub fn more(&mut self, all: usize, shown: usize, what: &str) {
        if let Some(more @ 1..) = all.checked_sub(shown) {
            self.line(&format!("and {} more{what}", units::count(more as u64)));
        }
    }

    /// Adds items to the page, in as many lines as they need, with the words `lead` before them. Nothing is
    /// added if there are no items.
    pub fn items<S: Into<Span>>(
        &mut self,
        lead: impl Into<Span>,
        items: impl IntoIterator<Item = S>,
    ) {
        let items: Vec<Span> = items.into_iter().map(Into::into).collect();
        if !items.is_empty() {
            let lead = lead.into();
            self.blocks.push(Block::Items { lead, items });
        }
    }

    /// Adds a line to the page with a name on its left and items on its right, or several lines if they do not
    /// fit into one.
    pub fn head(&mut self, name: Span, items: Vec<Span>) {
        self.blocks.push(Block::Head { name, items });
    }

    /// Adds one line to the page, in which a name is shortened to the width that the rest of the line leaves.
    pub fn named<S: Into<Span>, T: Into<Span>>(
        &mut self,
        before: impl IntoIterator<Item = S>,
        name: impl Into<Span>,
        least: usize,
        after: impl IntoIterator<Item = T>,
    ) {
        self.blocks.push(Block::Named {
            before: before.into_iter().map(Into::into).collect(),
            name: name.into(),
            least,
            after: after.into_iter().map(Into::into).collect(),
        });
    }

    pub fn bars(&mut self, bars: Bars) {
        self.blocks.push(Block::Bars(bars));
    }

    /// Adds a table of the given rows to the page.
    pub fn table<R>(&mut self, table: &Table<'_, R>, rows: impl IntoIterator<Item = R>) {
        self.grid(table.grid(rows), 0);
    }

    /// Adds a table of the first `most` rows to the page. The title of the table has the number of shown rows
    /// and the number of all rows.
    pub fn first<'r, R>(
        &mut self,
        table: Table<'_, &'r R>,
        what: &str,
        rows: &'r [R],
        most: usize,
    ) {
        let title = Title::top(what, most, rows.len());
        self.table(&table.titled(title), rows.iter().take(most));
    }

    /// Adds a table that begins `indent` columns from the left to the page.
    pub fn grid(&mut self, grid: Grid, indent: usize) {
        self.blocks.push(Block::Table { grid, indent });
    }

    /// The number of lines of the page on a terminal.
    pub fn height(&self, style: &Style) -> usize {
        let blocks = self.blocks.iter();
        blocks.map(|block| block.lines(style).len()).sum()
    }

    /// The page as text for a terminal or a log.
    pub fn text(&self, style: &Style) -> String {
        laid_out(&self.blocks, style)
    }

    /// The page as Markdown: its tables as tables, and its other lines as blocks of code.
    pub fn markdown(&self, title: &str, style: &Style) -> String {
        let is_table = |block: &Block| matches!(block, Block::Table { .. });
        let parts = self
            .blocks
            .chunk_by(|block, next| !is_table(block) && !is_table(next));
        let parts: Vec<Result<String, String>> = parts
            .map(|part| match part {
                [Block::Table { grid, .. }] => Ok(grid.markdown()),
                part => Err(laid_out(part, style)),
            })
            .collect();
        let code = parts.iter().filter_map(|part| part.as_ref().err());
        let runs = code.flat_map(|text| text.split(|c| c != '`')).map(str::len);
        let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
        let mut out = format!("### {title}\n");
        for part in &parts {
            let _ = match part.as_ref().map_err(|text| text.trim_matches('\n')) {
                Ok(table) => write!(out, "\n{table}"),
                Err("") => Ok(()),
                Err(text) => write!(out, "\n{fence}text\n{text}\n{fence}\n"),
            };
        }
        out
    }
}

/// The lines of some blocks of a page as text for a terminal or a log.
fn laid_out(blocks: &[Block], style: &Style) -> String {
    let mut out = String::new();
    for line in blocks.iter().flat_map(|block| block.lines(style)) {
        write_line(&mut out, style, &line);
    }
    out
}

/// Writes one line of a page for a terminal. The codes of a colour are written only once for neighbouring pieces of
/// that colour. No line ends with a space.
fn write_line(out: &mut String, style: &Style, line: &[Span]) {
    let begin = out.len();
    for run in line.chunk_by(|span, next| span.paint == next.paint) {
        let text: String = run.iter().map(|span| span.text.as_str()).collect();
        let paint = run.first().map_or(Paint::Plain, |span| span.paint);
        out.push_str(&style.paint(paint, &text));
    }
    let ink = out.get(begin..).map_or(0, |line| line.trim_end().len());
    out.truncate(begin + ink);
    out.push('\n');
}

/// Escapes the hidden characters in some pieces of a page's text.
fn safe(spans: &[Span]) -> Line {
    let safe = |span: &Span| Span::new(span.paint, escape::text(span.text.as_bytes()));
    spans.iter().map(safe).collect()
}

fn width(spans: &[Span]) -> usize {
    spans.iter().map(Span::width).sum()
}

impl Block {
    fn lines(&self, style: &Style) -> Vec<Line> {
        match self {
            Block::Line(spans) => vec![safe(spans)],
            Block::Text { lead, text, most } => wrap(lead, &safe(text), *most, style),
            Block::Items { lead, items } => in_lines(lead, &safe(items), style),
            Block::Head { name, items } => head(name, &safe(items), style),
            Block::Named {
                before,
                name,
                least,
                after,
            } => {
                let (mut line, after) = (safe(before), safe(after));
                let room = style.width.saturating_sub(width(&line) + width(&after));
                for name in safe(std::slice::from_ref(name)) {
                    let text = units::shorten(&name.text, room.max(*least));
                    line.push(Span::new(name.paint, text));
                }
                line.extend(after);
                vec![line]
            }
            Block::Bars(bars) => bars.lines(style),
            Block::Table { grid, indent } => grid.lines(style, *indent),
        }
    }
}

/// Divides a text into lines for a terminal, with the words `lead` before the text. If `most` is set, the text is
/// shortened to the length of that many full lines.
fn wrap(lead: &Span, text: &[Span], most: Option<usize>, style: &Style) -> Vec<Line> {
    let indent = lead.width();
    let room = style.width.saturating_sub(indent).max(20);
    let mut whole: String = text.iter().map(|span| span.text.as_str()).collect();
    let first = text.first().map_or(Paint::Plain, |span| span.paint);
    let mut letters: Vec<Span> = text.to_vec();
    if let Some(most) = most {
        whole = units::shorten(&whole, room * most);
        letters = vec![Span::new(first, whole.clone())];
    }
    let letters = letters.iter().flat_map(|span| {
        let letters = span.text.chars();
        letters.map(|letter| (span.paint, letter))
    });
    let mut letters = letters.peekable();
    let mut lines = Vec::new();
    for (at, text) in units::wrap(&whole, room).into_iter().enumerate() {
        let mut line = vec![match at {
            0 => lead.clone(),
            _ => Span::new(first, " ".repeat(indent)),
        }];
        // `units::wrap` leaves out the spaces at which it divides lines, so they are skipped here.
        while letters.next_if(|(_, letter)| *letter == ' ').is_some() {}
        for (paint, letter) in letters.by_ref().take(text.chars().count()) {
            match line.last_mut().filter(|span| span.paint == paint) {
                Some(span) => span.text.push(letter),
                None => line.push(Span::new(paint, letter)),
            }
        }
        lines.push(line);
    }
    lines
}

/// Divides items into lines for a terminal, with the words `lead` before the first item.
fn in_lines(lead: &Span, items: &[Span], style: &Style) -> Vec<Line> {
    let mut lead = lead.clone();
    let mut lines = Vec::new();
    let mut row: Line = Vec::new();
    for item in items {
        let used = lead.width() + width(&row) + units::width(ITEM_SEPARATOR) + item.width();
        if !row.is_empty() && used > style.width {
            lines.extend(wrap(&lead, &row, None, style));
            lead.text = " ".repeat(lead.width());
            row.clear();
        }
        if let Some(before) = row.last() {
            let same = before.paint == item.paint;
            let paint = if same { item.paint } else { Paint::Plain };
            row.push(Span::new(paint, ITEM_SEPARATOR));
        }
        row.push(item.clone());
    }
    lines.extend(wrap(&lead, &row, None, style));
    lines
}

fn head(name: &Span, items: &[Span], style: &Style) -> Vec<Line> {
    let mut row = safe(std::slice::from_ref(name));
    let facts = in_lines(
        &Span::from(""),
        items,
        &Style {
            width: usize::MAX,
            ..*style
        },
    );
    let facts: Line = facts.into_iter().flatten().collect();
    let used = width(&row) + width(&facts);
    if used + 2 <= style.width {
        row.push(Span::from(" ".repeat(style.width - used)));
        row.extend(facts);
        return vec![row];
    }
    for span in &mut row {
        span.text = units::shorten(&span.text, style.width);
    }
    let mut lines = vec![row];
    lines.extend(in_lines(&Span::from(""), items, style));
    lines
}

impl BarRow {
    pub fn counted(name: impl Into<String>, time: u64, count: u64) -> BarRow {
        BarRow {
            name: name.into(),
            time,
            note: format!("{:>6} ×", units::count(count)),
        }
    }
}

impl Bars {
    /// The lines of the block of bars, one for each row. On a terminal that is too narrow for names and bars,
    /// the bars are left out.
    fn lines(&self, style: &Style) -> Vec<Line> {
        /// The least width in columns of a name beside a bar.
        const NAME: usize = 10;
        const BAR: usize = 6;
        let safe = |name: &str| escape::text(name.as_bytes());
        let names = self.rows.iter().map(|row| units::width(&safe(&row.name)));
        let names = names.max();
        let room = style.width.saturating_sub(self.beside);
        let names = names.unwrap_or(0).min(self.name);
        let names = names.min(room.saturating_sub(BAR).max(NAME));
        let columns = room.saturating_sub(names).min(40);
        let largest = self.rows.first().map_or(1, |row| row.time);
        let line = |row: &BarRow| {
            let name = units::shorten(&safe(&row.name), names);
            let bar = if columns >= BAR {
                units::pad(&style.bar(row.time, largest, columns), columns, false) + "  "
            } else {
                String::new()
            };
            let figures = format!(
                "{}  {}  {}",
                units::pad(&units::time(row.time), 9, true),
                units::pad(&units::share(row.time, self.whole), 5, true),
                row.note,
            );
            let name = format!("  {}  ", units::pad(&name, names, false));
            vec![name.into(), Span::new(Paint::Bar, bar), figures.into()]
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Style = Style {
        width: 40,
        ..Style::PLAIN
    };

    #[test]
    fn bars_have_the_terminals_width() {
        let names = ["sleep or blocked in containerd-shim", "cc1"];
        let rows = names.map(|name| (name, 1_500_000_000, 12_345));
        for width in [40, 48, 50, 60, 80] {
            let style = Style { width, ..NARROW };
            for (name, beside) in [(28, 33), (24, 34)] {
                let mut page = Page::new();
                page.bars(Bars {
                    rows: rows
                        .map(|(name, time, count)| BarRow::counted(name, time, count))
                        .into(),
                    whole: 3_000_000_000,
                    name,
                    beside,
                });
                let out = page.text(&style);
                let widest = out.lines().map(units::width).max();
                assert!(widest <= Some(width), "{width}: {out}");
                assert_eq!(out.contains('█'), width >= 50, "{width}: {out}");
            }
        }
    }

    #[test]
    fn a_sentence_keeps_its_figures() {
        let line = |lead: &str, text: &str| {
            let mut page = Page::new();
            page.sentence(lead, text);
            page.text(&NARROW)
        };
        let text = "Waits for block I/O: 1.31 s for vda, 21 ms for a disk that is not known";
        let want = "  Waits for block I/O: 1.31 s for vda,\n  21 ms for a disk that is not known\n";
        assert_eq!(line("  ", text), want);
        assert_eq!(line("", "short"), "short\n");
        assert_eq!(line("", ""), "\n");
        // A sentence can contain a very long command line, here of 15 kB. It is shortened in the middle.
        let long = line("", &format!("make {}done", "-j 2 ".repeat(3000)));
        let lines: Vec<&str> = long.lines().collect();
        assert!(
            lines.len() <= SENTENCE + 1 && long.ends_with("done\n"),
            "{long}"
        );
        assert!(lines.iter().all(|line| line.len() <= 42), "{long}");
    }

    #[test]
    fn colours_and_escapes_survive_the_layout() {
        let mut page = Page::new();
        page.led(
            Span::new(Paint::Bold, "Verdict  "),
            Span::from("the machine took most of the time of this build"),
        );
        let bad = Span::new(Paint::Bad, "exit 1");
        page.head(Span::new(Paint::Bold, "make\n"), vec![bad, "1.0 s".into()]);
        let color = Style {
            color: true,
            ..NARROW
        };
        let want =
            "\x1b[1mVerdict  \x1b[0mthe machine took most of the\n         time of this build\n\
                    \x1b[1mmake\\n\x1b[0m                    \x1b[31mexit 1\x1b[0m · 1.0 s\n";
        assert_eq!(page.text(&color), want);
        assert_eq!(page.height(&NARROW), 3);
    }
}
