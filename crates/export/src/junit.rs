//! Writes a JUnit report with facts of a recording added to its tests, as properties. Everything else in the
//! file stays as it is, byte by byte.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use quick_xml::events::{BytesStart, Event};
use quick_xml::Reader;
use tr_import::junit::{attributes, read, DEPTH, FORMAT};
use tr_import::Error;
use tr_insight::steps::{Step, StepIx, Steps};
use tr_insight::verdicts::parts::WallPart;
use tr_insight::verdicts::Verdicts;
use tr_insight::Recording;
use tr_placing::junit::cases::CaseSteps;
use tr_text::escape::commands;
use tr_text::units;

/// The prefix of the names of all properties that `tr` adds to tests. Properties of tests in a JUnit report whose
/// names already have this prefix are removed.
const OUR_PREFIX: &str = "tr.";

/// Adds properties to the tests of a JUnit report. Returns the report, and the number of its tests whose work in the
/// recording is known.
///
/// # Errors
/// The file is no JUnit report, or is damaged, or is larger than a limit.
pub fn write(bytes: &[u8], recording: &Recording) -> Result<(Vec<u8>, u64), Error> {
    let start = bytes.trim_ascii_start();
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    // Reading the report first verifies that the file is within all limits.
    let report = read(start)?.ok_or(Error::Unknown)?;
    let text = std::str::from_utf8(start).map_err(|_| Error::Unknown)?;
    let Recording {
        analysis, imports, ..
    } = recording;
    let steps = Steps::new(analysis, &imports.spans);
    let mut tests = CaseSteps::new(&steps, &report.suites);
    let verdicts = Verdicts::new(analysis, &steps);
    let mut writer = Writer {
        text,
        out: bytes
            .get(..bytes.len() - start.len())
            .unwrap_or_default()
            .to_vec(),
        copied: 0,
        open: Vec::new(),
        count: 0,
    };
    writer.all(&mut |class, name| {
        let step = tests.find(class, name);
        let proven = step.and_then(|at| Some((at, tests.with_work(at)?)));
        let properties = proven.map(|(at, step)| properties(step, at, &verdicts));
        Written {
            has_figures: properties.is_some(),
            text: properties.unwrap_or_else(|| {
                let step = step.and_then(|at| steps.list().get(at));
                property(
                    "place",
                    &place_words(step.and_then(|step| step.place_error)),
                )
            }),
        }
    })?;
    Ok((writer.out, writer.count))
}

/// Makes a JUnit report safe for a log of a CI system: no line in it is a command (`::error::`). As XML it means
/// the same, except that blanks are added in comments and processing instructions.
///
/// # Errors
/// The report is damaged.
pub fn for_log(text: &str) -> Result<Cow<'_, str>, Error> {
    let commands = commands(text);
    if commands.is_empty() {
        return Ok(Cow::Borrowed(text));
    }
    // The XML reader counts positions from the end of the byte order mark, so the mark is cut off.
    if let Some(rest) = text.strip_prefix('\u{feff}') {
        return for_log(rest).map(|rest| Cow::Owned(format!("\u{feff}{rest}")));
    }
    let mut commands = commands.into_iter().peekable();
    let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
    let mut reader = Reader::from_str(text);
    loop {
        let begin = place(reader.buffer_position());
        let event = reader.read_event().map_err(|error| Error::Damaged {
            format: FORMAT,
            what: error.to_string(),
        })?;
        let end = place(reader.buffer_position());
        let (mut quote, mut looked) = (None, begin);
        while let Some(at) = commands.next_if(|at| *at < end) {
            out.push_str(text.get(copied..at).unwrap_or_default());
            let rest = text.get(at..).unwrap_or_default();
            let Some(first) = rest.chars().next() else {
                continue;
            };
            copied = at + first.len_utf8();
            let reference = format!("&#{};", u32::from(first));
            // The part of the tag before this place shows whether the place is inside of quotes.
            quote = quote_after(quote, text.get(looked..at).unwrap_or_default());
            looked = at;
            match event {
                Event::Text(_) => out.push_str(&reference),
                Event::CData(_) => {
                    let _ = write!(out, "]]>{reference}<![CDATA[");
                }
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) => {
                    out.push(first);
                    out.push(' ');
                }
                // The command is inside of the value of an attribute.
                _ if quote.is_some() => out.push_str(&reference),
                // The command begins before the name of an attribute. All blanks before the command, with their line
                // breaks, become one blank, so that the command does not begin a line.
                _ => {
                    let length = out.trim_end().len();
                    out.truncate(length);
                    out.push(' ');
                    out.push(first);
                }
            }
        }
        if matches!(event, Event::Eof) {
            break;
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Ok(Cow::Owned(out))
}

/// The quotation mark that is still open at the end of `part`, a part of an XML tag; `None` if no quotation is open
/// there. `open` is the quotation mark that was open at the beginning of `part`.
fn quote_after(open: Option<char>, part: &str) -> Option<char> {
    part.chars().fold(open, |quote, c| match quote {
        Some(open) if open == c => None,
        None if c == '"' || c == '\'' => Some(c),
        _ => quote,
    })
}

struct Written {
    /// The properties for one test of the JUnit report, as XML.
    text: String,
    /// Whether it is known what the threads of the test did. Otherwise the only property is the place.
    has_figures: bool,
}

/// The properties, as XML, that a test of the JUnit report gets if it is known what its threads did.
fn properties(step: &Step, at: StepIx, verdicts: &Verdicts) -> String {
    let mut all = vec![("place", place_words(step.place_error))];
    if let Some(figures) = verdicts.figures(at) {
        let seconds = |ns: u64| format!("{:.3}", ns as f64 / 1e9);
        all.extend([
            ("cpu_s", seconds(figures.parts.get(WallPart::Work))),
            (
                "starved_s",
                seconds(figures.parts.sum(WallPart::is_starved)),
            ),
            ("wanted_cpu_s", seconds(figures.parts.wanted())),
        ]);
        if verdicts.of(at).is_some() {
            all.push(("verdict", figures.name()));
            all.push(("verdict_s", seconds(figures.ns)));
        }
        if verdicts.reported(at).is_some() {
            all.push(("held_back", figures.text()));
        }
    }
    let all = all.iter();
    all.map(|(name, value)| property(name, value)).collect()
}

/// The words for how exactly the place of a test in the recording's time is known. `error` is a bound of the place's
/// error in nanoseconds; `None` if the place is not known.
fn place_words(error: Option<u64>) -> String {
    match error {
        Some(0) => "exact".to_owned(),
        Some(error) => format!("±{}", units::time(error)),
        None => "unknown".to_owned(),
    }
}

fn property(name: &str, value: &str) -> String {
    let value = tr_text::escape::text(value.as_bytes());
    let value = quick_xml::escape::escape(&value);
    format!("<property name=\"{OUR_PREFIX}{name}\" value=\"{value}\"/>")
}

/// An XML element of the JUnit report that has begun and not yet ended.
enum Open {
    /// The element of a test: the byte position after its start tag, and the properties that are to be inserted.
    Case(usize, String),
    /// The element `properties` that a test already has in the report.
    Properties,
    Other,
}

struct Writer<'a> {
    text: &'a str,
    out: Vec<u8>,
    /// The number of bytes of the original JUnit report that are processed so far, either copied or left out.
    copied: usize,
    open: Vec<Open>,
    count: u64,
}

impl Writer<'_> {
    fn all(&mut self, of: &mut dyn FnMut(&str, &str) -> Written) -> Result<(), Error> {
        let mut reader = Reader::from_str(self.text);
        loop {
            let damaged = |what: String| Error::Damaged {
                format: FORMAT,
                what,
            };
            let at = place(reader.buffer_position());
            let event = reader
                .read_event()
                .map_err(|error| damaged(error.to_string()))?;
            let end = place(reader.buffer_position());
            match event {
                Event::Start(element) => {
                    let open = self.element(&element, at..end, false, of);
                    self.open.push(open.map_err(damaged)?);
                    if self.open.len() > DEPTH {
                        return Err(damaged(format!("more than {DEPTH} nested elements")));
                    }
                }
                Event::Empty(element) => {
                    let open = self.element(&element, at..end, true, of);
                    open.map_err(damaged)?;
                }
                Event::End(_) => {
                    if let Some(Open::Case(tag, properties)) = self.open.pop() {
                        self.insert(tag, &wrapped(&properties));
                    }
                }
                Event::Eof => break,
                _ => {}
            }
        }
        self.copy(self.text.len());
        Ok(())
    }

    /// Handles the start tag of an XML element, or a whole empty element. `span` is the range of the tag's bytes in the
    /// report, and `of` returns the properties for a test by its class and name.
    fn element(
        &mut self,
        element: &BytesStart<'_>,
        span: Range<usize>,
        is_empty: bool,
        of: &mut dyn FnMut(&str, &str) -> Written,
    ) -> Result<Open, String> {
        match (element.name().as_ref(), self.open.last_mut()) {
            ("testcase", _) => {
                let read = attributes(element.attributes())?;
                let written = of(&read.class, &read.name);
                self.count += u64::from(written.has_figures);
                if !is_empty {
                    return Ok(Open::Case(span.end, written.text));
                }
                self.fill(span, "testcase", &wrapped(&written.text));
            }
            ("properties", Some(Open::Case(_, properties))) => {
                let properties = std::mem::take(properties);
                if !is_empty {
                    self.insert(span.end, &properties);
                    return Ok(Open::Properties);
                }
                self.fill(span, "properties", &properties);
            }
            ("property", Some(Open::Properties)) if is_empty => {
                let read = attributes(element.attributes())?;
                if read.name.starts_with(OUR_PREFIX) {
                    self.copy(span.start);
                    self.copied = span.end;
                }
            }
            _ => {}
        }
        Ok(Open::Other)
    }

    fn copy(&mut self, to: usize) {
        let text = self.text.as_bytes().get(self.copied..to);
        self.out.extend_from_slice(text.unwrap_or_default());
        self.copied = to.max(self.copied);
    }

    fn insert(&mut self, at: usize, text: &str) {
        if !text.is_empty() {
            self.copy(at);
            self.out.extend_from_slice(text.as_bytes());
        }
    }

    /// Writes an empty element of the JUnit report as one that contains `text`; the element stays as it is if
    /// `text` is empty.
    fn fill(&mut self, span: Range<usize>, name: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let tag = self.text.get(span.clone()).unwrap_or_default();
        let tag = tag.strip_suffix("/>").unwrap_or(tag).trim_ascii_end();
        self.copy(span.start);
        let filled = format!("{tag}>{text}</{name}>");
        self.out.extend_from_slice(filled.as_bytes());
        self.copied = span.end;
    }
}

fn wrapped(properties: &str) -> String {
    match properties {
        "" => String::new(),
        _ => format!("<properties>{properties}</properties>"),
    }
}

fn place(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The names, values and texts of an XML document as one string, without comments, to compare what two
    /// documents mean.
    fn meaning(xml: &str) -> String {
        let mut reader = Reader::from_str(xml);
        let mut all = String::new();
        loop {
            let piece = match reader.read_event().unwrap() {
                Event::Start(tag) | Event::Empty(tag) => {
                    let value = |attribute: quick_xml::events::attributes::Attribute<'_>| {
                        let value = attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0);
                        format!(" {:?}={:?}", attribute.key, value.unwrap())
                    };
                    let list = tag.attributes().map(|attribute| value(attribute.unwrap()));
                    format!("<{:?}{}>", tag.name(), list.collect::<String>())
                }
                Event::Text(text) => text.to_string(),
                Event::CData(text) => text.to_string(),
                Event::GeneralRef(reference) => match reference.resolve_char_ref().unwrap() {
                    Some(c) => c.to_string(),
                    None => format!("&{};", &*reference),
                },
                Event::Eof => return all,
                _ => continue,
            };
            all.push_str(&piece);
        }
    }

    /// Tests that no line of a report made safe for a log is a command to a CI system, wherever in the document
    /// the command stands.
    #[test]
    fn no_line_of_a_log_is_a_command() {
        let kept = "<testsuite name='a::b'><testcase name='x'>a ::error::b<![CDATA[c ::d]]></testcase></testsuite>";
        assert!(matches!(for_log(kept), Ok(Cow::Borrowed(text)) if text == kept));
        for command in [
            "\n::error::x",
            "\r\n \t::warning::x",
            "##[error]x",
            "##vso[task]",
            "section_start:0:x",
        ] {
            let places = [
                format!("<testsuite><testcase><failure>a{command}</failure></testcase></testsuite>"),
                format!("<testsuite><system-out><![CDATA[a{command}{command}]]></system-out></testsuite>"),
                format!("<testsuite name=\"it's{command}\"/>"),
                format!("<testsuite a='\"'><!-- a{command} --></testsuite>"),
                format!("<testsuite>&lt;{command}&amp;{command}</testsuite>"),
            ];
            for text in places {
                let shown = for_log(&text).unwrap();
                assert_eq!(commands(&shown), [0; 0], "{shown}");
                assert_eq!(meaning(&shown), meaning(&text), "{shown}");
            }
        }
        let names = "<testsuite a='1'\n ::b='2'\n/>";
        let shown = for_log(names).unwrap();
        assert_eq!(shown, "<testsuite a='1' ::b='2'\n/>");
    }

    fn written(text: &str) -> String {
        let mut writer = Writer {
            text,
            out: Vec::new(),
            copied: 0,
            open: Vec::new(),
            count: 0,
        };
        let mut of = |class: &str, name: &str| match name {
            "x" => Written {
                text: format!("<property name=\"tr.v\" value=\"{class}\"/>"),
                has_figures: true,
            },
            _ => Written {
                text: String::new(),
                has_figures: false,
            },
        };
        writer
            .all(&mut of)
            .map(|()| String::from_utf8(writer.out).unwrap_or_default())
            .unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn properties_are_added_and_all_else_stays() {
        let cases = [
            ("<testcase name='x' classname=\"c\" />", "<testcase name='x' classname=\"c\"><properties><property name=\"tr.v\" value=\"c\"/></properties></testcase>"),
            ("<testcase name='x'>\n <failure>&lt;a&#10;</failure></testcase>", "<testcase name='x'><properties><property name=\"tr.v\" value=\"\"/></properties>\n <failure>&lt;a&#10;</failure></testcase>"),
            ("<testcase name='x'><system-out/><properties><property name='a' value='1'/></properties></testcase>", "<testcase name='x'><system-out/><properties><property name=\"tr.v\" value=\"\"/><property name='a' value='1'/></properties></testcase>"),
            ("<testcase name='x'><properties/></testcase>", "<testcase name='x'><properties><property name=\"tr.v\" value=\"\"/></properties></testcase>"),
            ("<testcase name='y'><properties><property name='tr.v' value='old'/></properties></testcase>", "<testcase name='y'><properties></properties></testcase>"),
            ("<testcase name='y'/><!-- <testcase name='x'/> --><![CDATA[<testcase name='x'/>]]>", "<testcase name='y'/><!-- <testcase name='x'/> --><![CDATA[<testcase name='x'/>]]>"),
        ];
        for (before, after) in cases {
            let (head, foot) = (
                "<?xml version='1.0'?>\r\n<testsuite  name=\"é\">\t",
                "</testsuite>\n",
            );
            assert_eq!(
                written(&format!("{head}{before}{foot}")),
                format!("{head}{after}{foot}")
            );
            let twice = written(&written(&format!("{head}{before}{foot}")));
            assert_eq!(
                twice,
                written(&format!("{head}{before}{foot}")),
                "written twice"
            );
        }
    }
}
