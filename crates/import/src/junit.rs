//! JUnit XML: suites of tests with results and lengths, and with times of the day where the
//! tool writes them.

mod place;
pub mod write;

use quick_xml::events::attributes::Attributes;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::date::{self, Date};
use crate::{Error, RECORDS};

const FORMAT: &str = "JUnit XML";

/// The most elements around an element.
const DEPTH: usize = 100;

/// The most attributes of an element that are looked at.
const ATTRIBUTES: usize = 100;

/// The suites of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    suites: Vec<Suite>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Suite {
    it: Facts,
    cases: Vec<Case>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Case {
    it: Facts,
    result: &'static str,
}

/// An element that is open.
enum Open {
    /// Its place in the list.
    Suite(usize),
    Case,
    Other,
}

struct Parser {
    suites: Vec<Suite>,
    open: Vec<Open>,
    cases: usize,
}

impl Report {
    /// `None` for other XML.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Report>, Error> {
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
            Error::at_most(RECORDS, parser.cases, (FORMAT, "tests"))?;
        }
        let suites = parser.suites;
        Ok(began.then_some(Report { suites }))
    }
}

impl Parser {
    /// Takes the beginning of an element; an error is in words.
    fn element(&mut self, element: &BytesStart<'_>) -> Result<Open, String> {
        let around = self.open.iter().rev().find_map(|open| match open {
            Open::Suite(at) => Some(*at),
            _ => None,
        });
        match element.name().as_ref() {
            "testsuite" => {
                self.suites.push(Suite {
                    it: Facts::read(element.attributes())?,
                    cases: Vec::new(),
                });
                self.cases += 1;
                Ok(Open::Suite(self.suites.len() - 1))
            }
            "testcase" => {
                let it = Facts::read(element.attributes())?;
                let suite = around.and_then(|at| self.suites.get_mut(at));
                let suite = suite.ok_or("a testcase outside of any testsuite")?;
                self.cases += 1;
                let result = "passed";
                suite.cases.push(Case { it, result });
                Ok(Open::Case)
            }
            name @ ("failure" | "error" | "skipped") => {
                let is_case = matches!(self.open.last(), Some(Open::Case));
                let suite = around.and_then(|at| self.suites.get_mut(at));
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

/// The attributes of a suite or a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Facts {
    name: String,
    class: String,
    at: Option<Date>,
    /// In ns.
    length: Option<i64>,
}

impl Facts {
    fn read(mut list: Attributes<'_>) -> Result<Facts, String> {
        let mut it = Facts::default();
        // Attributes that are there twice take quadratic time to find.
        for attribute in list.with_checks(false).take(ATTRIBUTES) {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|error| error.to_string())?;
            match attribute.key.as_ref() {
                "name" => it.name = value.into_owned(),
                "classname" => it.class = value.into_owned(),
                "timestamp" => it.at = date::read(&value),
                "time" => it.length = seconds(&value),
                _ => {}
            }
        }
        Ok(it)
    }
}

/// Nanoseconds of seconds such as `0.151` or `1,234.5`.
fn seconds(text: &str) -> Option<i64> {
    let seconds: f64 = text.trim().replace(',', "").parse().ok()?;
    (0.0..1e9)
        .contains(&seconds)
        .then_some((seconds * 1e9) as i64)
}
