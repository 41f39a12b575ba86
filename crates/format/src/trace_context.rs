//! The context of a span of a distributed trace, as in the environment variable `TRACEPARENT` (W3C Trace
//! Context).

use std::fmt;

/// The span of a distributed trace in which a program runs, as in W3C Trace Context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The id of the distributed trace that the span belongs to. It is not 0.
    pub trace: [u8; 16],
    /// The id of the span in which the program runs. It is not 0.
    pub span: [u8; 8],
    flags: u8,
}

/// The flags of a trace context that `tr` passes on to other spans: the trace is sampled, and its id is
/// random.
const FLAGS: u8 = 0x03;

impl TraceContext {
    /// Parses the value of the variable `TRACEPARENT`: version, trace, span and flags in lower-case hexadecimal
    /// digits. Blanks around the value are allowed. A version after 00 may have more fields, which are ignored.
    /// `None` if the value has another form or an id is 0.
    pub fn parse(value: &str) -> Option<TraceContext> {
        let value = value.trim_matches([' ', '\t']);
        let mut fields = value.split('-');
        let [version] = bytes(fields.next()?)?;
        let (trace, span) = (bytes(fields.next()?)?, bytes(fields.next()?)?);
        let [flags] = bytes(fields.next()?)?;
        let more = fields.next().is_some();
        let valid =
            version != 0xff && trace != [0; 16] && span != [0; 8] && !(version == 0 && more);
        valid.then_some(TraceContext {
            trace,
            span,
            flags: flags & FLAGS,
        })
    }

    /// Returns the context of another span of the same distributed trace.
    pub fn with_span(self, span: [u8; 8]) -> TraceContext {
        TraceContext { span, ..self }
    }
}

/// Writes the context as a value of the variable `TRACEPARENT`, in version 00 of W3C Trace Context.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (
            u128::from_be_bytes(self.trace),
            u64::from_be_bytes(self.span),
        );
        write!(f, "00-{trace:032x}-{span:016x}-{:02x}", self.flags)
    }
}

/// Decodes `2 * N` lower-case hexadecimal digits to `N` bytes; `None` if the text has another form.
pub fn bytes<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let lower = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    let whole = digits.len() == 2 * N && digits.bytes().all(lower);
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    whole.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn passed_on(value: &str) -> Option<String> {
        TraceContext::parse(value).map(|context| context.to_string())
    }

    #[test]
    fn a_context_is_passed_on_as_version_00() {
        let whole = format!("00-{TRACE}-{SPAN}-01");
        for value in [
            whole.clone(),
            format!(" \t{whole} "),
            format!("01-{TRACE}-{SPAN}-01"),
            format!("cc-{TRACE}-{SPAN}-01-what-the-future-brings"),
            format!("01-{TRACE}-{SPAN}-01-"),
            format!("00-{TRACE}-{SPAN}-fd"),
        ] {
            assert_eq!(passed_on(&value).as_ref(), Some(&whole), "{value}");
        }
        let context = TraceContext::parse(&format!("00-{TRACE}-{SPAN}-00")).unwrap();
        assert_eq!(
            context.with_span([0x11; 8]).to_string(),
            format!("00-{TRACE}-1111111111111111-00")
        );
    }

    #[test]
    fn what_is_no_context_is_left_out() {
        for value in [
            String::new(),
            "00".into(),
            "00-é".into(),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-01-x"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("00-{TRACE}-{SPAN}"),
            format!("01-{TRACE}-{SPAN}-01.x"),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{SPAN}-0 1"),
            format!("0x-{TRACE}-{SPAN}-01"),
        ] {
            assert_eq!(passed_on(&value), None, "{value}");
        }
    }
}
