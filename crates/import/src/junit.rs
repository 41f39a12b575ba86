//! Reads JUnit XML: suites of tests with results and lengths, and with the times at which they
//! began where the tool writes them.

use quick_xml::events::attributes::Attributes as XmlAttributes;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use tr_placing::junit::{Attributes, Case, Report, Suite, TestResult};

use crate::date;
use crate::error::Error;
use crate::limits::RECORDS;

/// The name of the JUnit format as errors print it.
pub const FORMAT: &str = "JUnit XML";

/// The largest number of elements inside each other that are read in a JUnit report.
pub const DEPTH: usize = 100;

/// The largest number of attributes of one element in a JUnit report that are read.
const ATTRIBUTES: usize = 100;

/// The beginning of the output that the JUnit platform writes for each test. Suites in such a
/// report list the tests in the order in which they were found, and not in which they ran.
const PLATFORM: &str = "unique-id: [engine:";

/// The beginning of the output that behave writes for each test. The length of such a test is the sum
/// of the lengths of its steps.
const SCENARIO: &str = "@scenario.begin";

/// The words between the name and the length of a step in the output of behave.
const STEPS: [&str; 2] = [" ... passed in ", " ... failed in "];

/// An element of a JUnit report whose end was not read yet.
enum Open {
    /// A suite, by its index in the list of suites.
    Suite(usize),
    Case,
    Other,
}

struct Parser {
    suites: Vec<Suite>,
    open: Vec<Open>,
    cases: usize,
    /// The index of the suite that collects the tests directly below the element `testsuites`. This suite has no name
    /// and no times.
    loose: Option<usize>,
    /// Whether the JUnit report has a length whose comma can only be a decimal comma.
    is_decimal: bool,
    /// The lengths of the JUnit report such as `1,234`. Their comma is read as one between thousands, unless another
    /// length shows that the report has decimal commas.
    grouped: Vec<Grouped>,
}

/// A length of a test or suite such as `1,234`, whose comma can stand between thousands or be a
/// decimal comma.
struct Grouped {
    suite: usize,
    /// The index in the suite of the test that has the length; `None` if it is the length of the
    /// suite itself.
    case: Option<usize>,
    /// The length in ns and the value of one unit of its last digit in ns, if the comma is a
    /// decimal comma.
    by_comma: (i64, i64),
}

/// Reads a JUnit report. Returns `None` for other XML, and for text that is no XML.
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
        is_decimal: false,
        grouped: Vec::new(),
    };
    let mut began = false;
    loop {
        let at = reader.buffer_position();
        let event = reader.read_event();
        let event = match event {
            Ok(event) => event,
            // HTML and other text that is no XML is not an error, but another format.
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
            Event::CData(ref text) => parser.text(text),
            Event::Eof if !parser.open.is_empty() => {
                return Err(damaged(at, "the end is missing".to_owned()));
            }
            Event::Eof => break,
            _ => {}
        }
        Error::at_most(RECORDS, parser.cases, FORMAT, "tests")?;
    }
    parser.use_decimal_commas();
    let mut suites = parser.suites;
    // Some writers cut off zeros: beside `0.251`, the length `0.3` stands for `0.300`. So all lengths of tests get
    // one precision, and all lengths of suites get one.
    let cases = suites.iter_mut().flat_map(|suite| &mut suite.cases);
    share_digits(cases.map(|case| &mut case.attributes).collect());
    share_digits(
        suites
            .iter_mut()
            .map(|suite| &mut suite.attributes)
            .collect(),
    );
    suites.iter_mut().for_each(share_digit_of_suite);
    suites.iter_mut().for_each(share_digit_of_times);
    Ok(began.then_some(Report { suites }))
}

impl Parser {
    /// The index of the suite for a test that lies directly below the root `testsuites` of a JUnit
    /// report, as node's test runner writes it.
    fn suite_of_root(&mut self) -> Option<usize> {
        if self.open.len() != 1 {
            return None;
        }
        if self.loose.is_none() {
            let at = self.suites.len();
            self.suites.push(Suite {
                attributes: Attributes::default(),
                cases: Vec::new(),
                has_order: true,
                outermost: at,
            });
            self.loose = Some(at);
        }
        self.loose
    }

    /// Examines a CDATA section in a JUnit report, which has the output of a test. If the JUnit platform wrote the
    /// output, the order of the tests in the report is not the order in which they ran. If behave wrote it, the
    /// length of a test with several steps is the sum of the steps' lengths.
    fn text(&mut self, text: &str) {
        if text.trim_start().starts_with(PLATFORM) {
            for suite in &mut self.suites {
                suite.has_order = false;
            }
        }
        if text.trim_start().starts_with(SCENARIO) {
            let steps = STEPS.iter().map(|words| text.matches(words).count());
            let is_sum = steps.sum::<usize>() > 1;
            let of_suite = self.open.iter().rev().find_map(|open| match open {
                Open::Suite(at) => Some(*at),
                _ => None,
            });
            let suite = of_suite.and_then(|at| self.suites.get_mut(at));
            let case = suite.and_then(|suite| suite.cases.last_mut());
            if let Some(case) = case {
                case.attributes.is_sum = is_sum;
            }
        }
    }

    /// Notes which meanings the comma in a length of the JUnit report can have.
    fn note(&mut self, length: Option<Length>, suite: usize, case: Option<usize>) {
        let Some(length) = length else {
            return;
        };
        self.is_decimal |= length.is_decimal;
        self.grouped.extend(length.by_comma.map(|by_comma| Grouped {
            suite,
            case,
            by_comma,
        }));
    }

    /// Reads the commas in lengths of the JUnit report as decimal commas, if at least one of them
    /// can be nothing else.
    fn use_decimal_commas(&mut self) {
        if !self.is_decimal {
            return;
        }
        for grouped in &self.grouped {
            let suite = self.suites.get_mut(grouped.suite);
            let attributes = suite.and_then(|suite| match grouped.case {
                Some(case) => Some(&mut suite.cases.get_mut(case)?.attributes),
                None => Some(&mut suite.attributes),
            });
            if let Some(attributes) = attributes {
                attributes.length = Some(grouped.by_comma.0);
                attributes.digit = grouped.by_comma.1;
            }
        }
    }

    /// Handles the beginning of an element in a JUnit report. An error is text for the user.
    fn element(&mut self, element: &BytesStart<'_>) -> Result<Open, String> {
        let around = self.open.iter().rev().find_map(|open| match open {
            Open::Suite(at) => Some(*at),
            _ => None,
        });
        match element.name().as_ref() {
            "testsuite" => {
                let (attributes, length) = with_length(element.attributes())?;
                let at = self.suites.len();
                self.note(length, at, None);
                let outermost = self.open.iter().find_map(|open| match open {
                    Open::Suite(at) => Some(*at),
                    _ => None,
                });
                self.suites.push(Suite {
                    attributes,
                    cases: Vec::new(),
                    has_order: true,
                    outermost: outermost.unwrap_or(at),
                });
                self.cases += 1;
                Ok(Open::Suite(at))
            }
            "testcase" => {
                let (attributes, length) = with_length(element.attributes())?;
                let around = around.or_else(|| self.suite_of_root());
                let at = around.ok_or("a testcase outside of any testsuite")?;
                let case = self.suites.get(at).map_or(0, |suite| suite.cases.len());
                self.note(length, at, Some(case));
                if let Some(suite) = self.suites.get_mut(at) {
                    suite.cases.push(Case {
                        attributes,
                        result: TestResult::Passed,
                        number: self.cases,
                    });
                }
                self.cases += 1;
                Ok(Open::Case)
            }
            name @ ("failure" | "error" | "skipped") => {
                let is_case = matches!(self.open.last(), Some(Open::Case));
                let suite = around.or(self.loose).and_then(|at| self.suites.get_mut(at));
                let case = suite.and_then(|suite| suite.cases.last_mut());
                if let Some(case) = case.filter(|_| is_case) {
                    case.result = match name {
                        "failure" => TestResult::Failed,
                        "error" => TestResult::Error,
                        _ => TestResult::Skipped,
                    };
                }
                Ok(Open::Other)
            }
            _ => Ok(Open::Other),
        }
    }
}

/// Reads the attributes of an XML element of a JUnit report.
///
/// # Errors
/// The attributes are damaged; the error is text for the user.
pub fn attributes(list: XmlAttributes<'_>) -> Result<Attributes, String> {
    with_length(list).map(|(attributes, _)| attributes)
}

/// Reads the attributes of an XML element of a JUnit report, and the length as it is written there.
/// An error is text for the user.
fn with_length(mut list: XmlAttributes<'_>) -> Result<(Attributes, Option<Length>), String> {
    let mut read = Attributes::default();
    let mut known = None;
    // A check for duplicate attributes would take quadratic time.
    for attribute in list.with_checks(false).take(ATTRIBUTES) {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|error| error.to_string())?;
        match attribute.key.as_ref() {
            "name" => read.name = value.into_owned(),
            "classname" => read.class = value.into_owned(),
            "file" | "filepath" => read.file = Some(value.into_owned()),
            "timestamp" => read.at = date::read(&value),
            "time" => {
                known = length(&value);
                read.length = known.map(|length| length.ns);
                read.digit = known.map_or(0, |length| length.digit);
            }
            _ => {}
        }
    }
    Ok((read, known))
}

/// If all lengths in a JUnit report end with at least this number of zeros, the zeros are not there by chance: these
/// digits were not measured. Go, for example, rounds to 10 ms and writes `0.300000`.
const ZEROS: u32 = 4;

/// Sets the precision of the lengths in a JUnit report to that of the length with the most digits. Zeros with which
/// all lengths end do not count as digits, because they were not measured. A length that is less than such a round
/// number by one unit of the next digit counts as round, too: gotestsum writes 2.01 s as `2.009000`, because the
/// binary number is a little smaller and is cut.
fn share_digits(elements: Vec<&mut Attributes>) {
    let lengths = || elements.iter().filter(|element| element.length.is_some());
    let written = lengths().map(|element| element.digit).min().unwrap_or(0);
    let is_multiple = |digit: i64| {
        let mut lengths = lengths().filter_map(|element| element.length);
        lengths.all(|length| {
            let below = digit - length % digit;
            below == digit || below == digit / 10
        })
    };
    let has_length = lengths().any(|element| element.length > Some(0));
    let coarser = (ZEROS..=9).filter_map(|zeros| written.checked_mul(10_i64.pow(zeros)));
    let coarser = coarser.take_while(|digit| has_length && *digit > 0 && is_multiple(*digit));
    let finest = coarser.last().unwrap_or(written);
    for element in elements {
        element.digit = finest;
    }
}

/// If the lengths of a suite's tests add up to the suite's own length, the tests get the precision of the suite's
/// length. For example, GoogleTest writes ms without the zeros at the end: in a suite of `1.001`, tests of `0.3`,
/// `0.4` and `0.3` lasted 300, 400 and 300 ms.
fn share_digit_of_suite(suite: &mut Suite) {
    let digit = suite.attributes.digit;
    let cases = i64::try_from(suite.cases.len()).unwrap_or(i64::MAX);
    let off = suite.attributes.length.map_or(i64::MAX, |length| {
        length.saturating_sub(suite.sum()).saturating_abs()
    });
    // The sum of only two rounded lengths often agrees with the suite's length by chance. So at least three are needed.
    if cases > 2 && digit > 0 && off <= cases.saturating_mul(digit) {
        for case in &mut suite.cases {
            case.attributes.digit = case.attributes.digit.min(digit);
        }
    }
}

/// The smallest number of pairs of tests whose times must agree with their lengths. Then the lengths are taken to be as
/// precise as the times. A guess: with lengths that were rounded to 100 ms and times in milliseconds, three pairs agree
/// by chance in one of 10,000 files.
const PAIRS: usize = 3;

/// If each length of a suite's tests is the difference between two consecutive times of day, the lengths get the
/// precision of these times. In this case it is chance that all lengths end with zeros: the tests of a GoogleTest suite
/// can all last a multiple of 100 ms.
fn share_digit_of_times(suite: &mut Suite) {
    let tests = suite.cases.iter().map(|case| &case.attributes);
    let tests = tests.map(|test| Some((test.at?, test.length?, test.digit)));
    let Some(tests) = tests.collect::<Option<Vec<_>>>() else {
        return;
    };
    let finest = tests.iter().map(|(at, ..)| at.digit).max().unwrap_or(0);
    let pairs = || tests.iter().zip(tests.iter().skip(1));
    let agree = |is_begin: bool| {
        pairs().all(|((at, length, _), (next, next_length, _))| {
            let length = if is_begin { length } else { next_length };
            let off = next.local.saturating_sub(at.local).saturating_sub(*length);
            off.saturating_abs() <= finest.saturating_mul(2)
        })
    };
    let is_coarser = finest > 0 && tests.iter().all(|(.., digit)| *digit > finest);
    if is_coarser && pairs().count() >= PAIRS && (agree(true) || agree(false)) {
        for case in &mut suite.cases {
            case.attributes.digit = finest;
        }
    }
}

/// The length of a test or suite as a JUnit report has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Length {
    ns: i64,
    /// The value in ns of one unit of the length's last digit, which is the precision of the
    /// length.
    digit: i64,
    /// The second meaning of a length such as `1,234`, whose comma is at first read as one between thousands: the
    /// length and the value of one unit of its last digit, both in ns, if the comma is a decimal comma.
    by_comma: Option<(i64, i64)>,
    /// Whether the comma in the length can only be a decimal comma.
    is_decimal: bool,
}

/// Reads the length of a test or suite from a JUnit report: seconds such as `0.151`, `10.3s`,
/// `1,234.5`, `0,151` (with a decimal comma), or `0:01:02.5`.
fn length(text: &str) -> Option<Length> {
    let text = text.trim();
    let text = text.strip_suffix('s').map_or(text, str::trim_end);
    if let Some((before, seconds)) = text.rsplit_once(':') {
        let mut minutes = 0_i64;
        for part in before.split(':') {
            let part: i64 = part
                .parse()
                .ok()
                .filter(|part| (0..1_000_000).contains(part))?;
            minutes = minutes.checked_mul(60)?.checked_add(part)?;
        }
        let last = length(seconds)?;
        let ns = minutes.checked_mul(60_000_000_000)?.checked_add(last.ns)?;
        return Some(Length {
            ns,
            by_comma: None,
            ..last
        });
    }
    let group = text.split_once(',').map(|(first, rest)| {
        let (whole, _) = rest.split_once('.').unwrap_or((rest, ""));
        let mut groups = whole.split(',');
        let has_thousands = (1..=3).contains(&first.len()) && !first.starts_with('0');
        has_thousands && groups.all(|group| group.len() == 3)
    });
    let decimal = || number(&text.replace('.', "").replace(',', "."));
    let has_one_comma = text.matches(',').count() == 1;
    match group {
        None => number(text).map(|(ns, digit)| Length {
            ns,
            digit,
            by_comma: None,
            is_decimal: false,
        }),
        Some(true) => number(&text.replace(',', "")).map(|(ns, digit)| Length {
            ns,
            digit,
            by_comma: decimal().filter(|_| has_one_comma && !text.contains('.')),
            is_decimal: false,
        }),
        Some(false) => decimal()
            .filter(|_| has_one_comma)
            .map(|(ns, digit)| Length {
                ns,
                digit,
                by_comma: None,
                is_decimal: true,
            }),
    }
}

/// Converts a number of seconds with a decimal point to ns. Also returns the value of one unit of
/// its last digit in ns.
fn number(text: &str) -> Option<(i64, i64)> {
    let seconds: f64 = text.parse().ok()?;
    let digits = text.rsplit_once('.').map_or(0, |(_, digits)| digits.len());
    let digit = 10_i64.pow(9_u32.saturating_sub(u32::try_from(digits).unwrap_or(9)));
    let is_length = (0.0..1e9).contains(&seconds);
    is_length.then_some(((seconds * 1e9).round() as i64, digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lengths of a JUnit report are read with the same meaning of the comma, because one file
    /// has one locale.
    #[test]
    fn a_comma_is_read_alike_in_a_whole_file() {
        let lengths = |second: &str| {
            let file = format!(
                "<testsuite time='1,500'><testcase time='1,234'/><testcase time='{second}'/></testsuite>"
            );
            let report = read(file.as_bytes()).expect("a file").expect("a report");
            let suite = report.suites.first().expect("a suite");
            let cases = suite.cases.iter().map(|case| &case.attributes);
            let all = std::iter::once(&suite.attributes).chain(cases);
            all.map(|attributes| attributes.length.map(|ns| ns / 1_000_000))
                .collect::<Vec<_>>()
        };
        assert_eq!(lengths("0,266"), [1_500, 1_234, 266].map(Some));
        let thousands = [1_500_000, 1_234_000, 1].map(Some);
        assert_eq!(lengths("0.001"), thousands);
    }

    /// behave counts the time of a scenario's steps, and not the time between them. So the length of a scenario with
    /// several steps is marked as a sum.
    #[test]
    fn a_scenario_of_several_steps_has_their_sum() {
        let is_sum = |output: &str| {
            let file = format!(
                "<testsuite><testcase time='0.3'><system-out>\n<![CDATA[\n{output}]]></system-out></testcase>\
                 <testcase time='0.3'/></testsuite>"
            );
            let report = read(file.as_bytes()).expect("a file").expect("a report");
            let suite = report.suites.first().expect("a suite");
            let cases = suite.cases.iter().map(|case| case.attributes.is_sum);
            cases.collect::<Vec<_>>()
        };
        let one = "@scenario.begin\n  Scenario: a\n    Given x ... passed in 0.3s\n";
        assert_eq!(is_sum(one), [false, false]);
        let two = format!("{one}    Then y ... failed in 0.000s\n");
        assert_eq!(is_sum(&two), [true, false]);
        assert_eq!(
            is_sum(&two.replace("@scenario.begin", "log:")),
            [false, false]
        );
    }

    /// If all lengths in a JUnit report end with zeros, these digits were not measured. Go rounds to 10 ms. A runner
    /// that measures more finely has other digits in some length.
    #[test]
    fn zeros_that_end_all_lengths_are_no_digits() {
        let digits = |lengths: &[&str]| {
            let cases = lengths
                .iter()
                .map(|time| format!("<testcase time='{time}'/>"));
            let file = format!("<testsuite>{}</testsuite>", cases.collect::<String>());
            let report = read(file.as_bytes()).expect("a file").expect("a report");
            let suite = report.suites.first().expect("a suite");
            suite.cases.first().map(|case| case.attributes.digit)
        };
        assert_eq!(
            digits(&["0.300000", "0.010000", "0.000000"]),
            Some(10_000_000)
        );
        assert_eq!(digits(&["2.009000", "0.050000"]), Some(10_000_000));
        assert_eq!(digits(&["2.008000", "0.050000"]), Some(1_000));
        assert_eq!(digits(&["0.300000", "0.010001"]), Some(1_000));
        assert_eq!(digits(&["0.400", "0.300"]), Some(1_000_000));
        assert_eq!(digits(&["0.000000"]), Some(1_000));
    }

    /// If the lengths of a suite's tests add up to the suite's length, the tests get the precision of the suite's
    /// length. GoogleTest writes ms without the zeros at the end.
    #[test]
    fn tests_have_the_digit_of_a_suite_that_is_their_sum() {
        let digit = |suite: &str, time: &str| {
            let file = format!(
                "<testsuite time='{suite}'><testcase time='0.3'/><testcase time='0.4'/><testcase time='{time}'/></testsuite>"
            );
            let report = read(file.as_bytes()).expect("a file").expect("a report");
            let suite = report.suites.first().expect("a suite");
            suite.cases.first().map(|case| case.attributes.digit)
        };
        assert_eq!(digit("1.001", "0.3"), Some(1_000_000));
        // The suite also did other work, or the lengths of its tests are rounded.
        assert_eq!(digit("1.031", "0.3"), Some(100_000_000));
        assert_eq!(digit("0.7", "0"), Some(100_000_000));
    }

    /// If each test's length agrees to the millisecond with the difference between two consecutive times, the lengths
    /// were measured in milliseconds. They may all end with zeros by chance.
    #[test]
    fn tests_have_the_digit_of_their_times() {
        let digit = |times: &[&str]| {
            let cases = times
                .iter()
                .map(|time| format!("<testcase time='0.3' timestamp='2026-11-30T01:40:4{time}'/>"));
            let file = format!("<testsuite>{}</testsuite>", cases.collect::<String>());
            let report = read(file.as_bytes()).expect("a file").expect("a report");
            let suite = report.suites.first().expect("a suite");
            suite.cases.first().map(|case| case.attributes.digit)
        };
        let times = ["8.839", "9.139", "9.440", "9.740"];
        assert_eq!(digit(&times), Some(1_000_000));
        assert_eq!(digit(&times[..3]), Some(100_000_000));
        assert_eq!(
            digit(&["8.839", "9.139", "9.453", "9.753"]),
            Some(100_000_000)
        );
    }

    #[test]
    fn lengths_have_points_commas_units_and_colons() {
        let ms =
            |text| length(text).map(|length| (length.ns / 1_000_000, length.digit / 1_000_000));
        for (text, want) in [
            ("0.151", Some((151, 1))),
            ("10.3s", Some((10_300, 100))),
            ("2 s", Some((2_000, 1_000))),
            ("0,160", Some((160, 1))),
            ("12,5", Some((12_500, 100))),
            ("1,234.5", Some((1_234_500, 100))),
            ("1,234", Some((1_234_000, 1_000))),
            ("1.234,5", Some((1_234_500, 100))),
            ("1,234,567", Some((1_234_567_000, 1_000))),
            ("0:00:00.69", Some((690, 10))),
            ("1:02:03", Some((3_723_000, 1_000))),
            ("1,2,3", None),
            ("-1", None),
            ("NaN", None),
            ("", None),
            ("a:1", None),
        ] {
            assert_eq!(ms(text), want, "{text}");
        }
    }
}
