//! JUnit XML: suites of tests with results and lengths, and with times of the day where the
//! tool writes them.

use quick_xml::events::attributes::Attributes as XmlAttributes;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use tr_insight::imports::junit::{Attributes, Case, Report, Suite};

use crate::date;
use crate::{Error, RECORDS};

/// The name of the format in errors.
pub const FORMAT: &str = "JUnit XML";

/// The most elements around an element.
pub const DEPTH: usize = 100;

/// The most attributes of an element that are looked at.
const ATTRIBUTES: usize = 100;

/// An element that is open.
enum Open {
    /// An open suite, by its place in the list.
    Suite(usize),
    Case,
    Other,
}

struct Parser {
    suites: Vec<Suite>,
    open: Vec<Open>,
    cases: usize,
    /// The place of the suite without a name or times that has the tests directly below `testsuites`.
    loose: Option<usize>,
}

/// Reads a report; `None` for other XML.
///
/// # Errors
/// The report is damaged, or larger than a limit.
pub fn read(bytes: &[u8]) -> Result<Option<Report>, Error> {
    let damaged = |at: u64, what: String| Error::Damaged {
        format: FORMAT,
        what: format!("{what}, at byte {at}"),
    };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Err(damaged(error.valid_up_to() as u64, "not UTF-8".to_owned())),
    };
    let mut reader = Reader::from_str(text);
    let mut parser = Parser {
        suites: Vec::new(),
        open: Vec::new(),
        cases: 0,
        loose: None,
    };
    let mut began = false;
    loop {
        let at = reader.buffer_position();
        let event = reader.read_event();
        let event = match event {
            Ok(event) => event,
            // HTML and the like.
            Err(_) if !began => return Ok(None),
            Err(error) => return Err(damaged(reader.error_position(), error.to_string())),
        };
        let wrong = |what: String| damaged(at, what);
        match event {
            Event::Start(ref element) | Event::Empty(ref element) => {
                if !began && !matches!(element.name().as_ref(), "testsuites" | "testsuite") {
                    return Ok(None);
                }
                began = true;
                let open = parser.element(element).map_err(wrong)?;
                if matches!(event, Event::Start(_)) {
                    parser.open.push(open);
                }
                if parser.open.len() > DEPTH {
                    return Err(damaged(at, format!("more than {DEPTH} nested elements")));
                }
            }
            Event::End(_) => drop(parser.open.pop()),
            Event::Eof if !parser.open.is_empty() => {
                return Err(damaged(at, "the end is missing".to_owned()));
            }
            Event::Eof => break,
            _ => {}
        }
        Error::at_most(RECORDS, parser.cases, FORMAT, "tests")?;
    }
    let mut suites = parser.suites;
    // Some writers cut zeros off: the digits of `0.3` beside `0.251` are those of a millisecond.
    let cases = suites.iter_mut().flat_map(|suite| &mut suite.cases);
    share_digits(cases.map(|case| &mut case.attributes).collect());
    share_digits(
        suites
            .iter_mut()
            .map(|suite| &mut suite.attributes)
            .collect(),
    );
    Ok(began.then_some(Report { suites }))
}

impl Parser {
    /// The suite of a test that lies directly below the root `testsuites`, as node's test runner writes it.
    fn suite_of_root(&mut self) -> Option<usize> {
        if self.open.len() != 1 {
            return None;
        }
        if self.loose.is_none() {
            self.suites.push(Suite {
                attributes: Attributes::default(),
                cases: Vec::new(),
            });
            self.loose = Some(self.suites.len() - 1);
        }
        self.loose
    }

    /// Takes the beginning of an element; an error is in words.
    fn element(&mut self, element: &BytesStart<'_>) -> Result<Open, String> {
        let around = self.open.iter().rev().find_map(|open| match open {
            Open::Suite(at) => Some(*at),
            _ => None,
        });
        match element.name().as_ref() {
            "testsuite" => {
                self.suites.push(Suite {
                    attributes: attributes(element.attributes())?,
                    cases: Vec::new(),
                });
                self.cases += 1;
                Ok(Open::Suite(self.suites.len() - 1))
            }
            "testcase" => {
                let attributes = attributes(element.attributes())?;
                let around = around.or_else(|| self.suite_of_root());
                let suite = around.and_then(|at| self.suites.get_mut(at));
                let suite = suite.ok_or("a testcase outside of any testsuite")?;
                self.cases += 1;
                suite.cases.push(Case {
                    attributes,
                    result: "passed",
                });
                Ok(Open::Case)
            }
            name @ ("failure" | "error" | "skipped") => {
                let is_case = matches!(self.open.last(), Some(Open::Case));
                let suite = around.or(self.loose).and_then(|at| self.suites.get_mut(at));
                let case = suite.and_then(|suite| suite.cases.last_mut());
                if let Some(case) = case.filter(|_| is_case) {
                    case.result = match name {
                        "failure" => "failed",
                        "error" => "error",
                        _ => "skipped",
                    };
                }
                Ok(Open::Other)
            }
            _ => Ok(Open::Other),
        }
    }
}

/// Reads the attributes of an element; an error is in words.
///
/// # Errors
/// The attributes are damaged.
pub fn attributes(mut list: XmlAttributes<'_>) -> Result<Attributes, String> {
    let mut read = Attributes::default();
    // Attributes that are there twice take quadratic time to find.
    for attribute in list.with_checks(false).take(ATTRIBUTES) {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|error| error.to_string())?;
        match attribute.key.as_ref() {
            "name" => read.name = value.into_owned(),
            "classname" => read.class = value.into_owned(),
            "timestamp" => read.at = date::read(&value),
            "time" => {
                read.length = seconds(&value);
                read.digit = digit(&value);
            }
            _ => {}
        }
    }
    Ok(read)
}

/// Gives each element the finest digit that any of their lengths has.
fn share_digits(elements: Vec<&mut Attributes>) {
    let finest = elements.iter().filter(|element| element.length.is_some());
    let finest = finest.map(|element| element.digit).min().unwrap_or(0);
    for element in elements {
        element.digit = finest;
    }
}

/// Nanoseconds of seconds such as `0.151`, `1,234.5` or, in a locale with a decimal comma,
/// `0,151`.
fn seconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let number = if has_decimal_comma(text) {
        text.replace('.', "").replace(',', ".")
    } else {
        text.replace(',', "")
    };
    let seconds: f64 = number.parse().ok()?;
    (0.0..1e9)
        .contains(&seconds)
        .then_some((seconds * 1e9) as i64)
}

/// Whether the comma of a number is the decimal one: it is the only one, and no point follows it.
fn has_decimal_comma(text: &str) -> bool {
    let comma = text
        .find(',')
        .filter(|first| text.rfind(',') == Some(*first));
    comma.is_some_and(|comma| text.rfind('.').is_none_or(|point| point < comma))
}

/// The length of the last digit of seconds, in ns.
fn digit(text: &str) -> i64 {
    let text = text.trim();
    let point = if has_decimal_comma(text) { ',' } else { '.' };
    let digits = text
        .rsplit_once(point)
        .map_or(0, |(_, digits)| digits.len());
    10_i64.pow(9_u32.saturating_sub(u32::try_from(digits).unwrap_or(9)))
}
