//! Sending an export to a receiver, by curl: it knows the machine's proxies and certificates.

use std::io::{self, Seek, SeekFrom, Write};
use std::process::{Command, ExitCode, Stdio};

use tr_export::Format;
use tr_format::ci::decoded;
use tr_text::escape;

/// The seconds after which an attempt fails.
const ATTEMPT: u32 = 10;
/// The seconds after which no further attempt begins: a build waits for 30 s at most.
const LAST: u32 = 20;
/// Attempts after the first, when the receiver is away or busy.
const RETRIES: u32 = 3;

/// A variable, unless it is blank.
fn set(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?;
    Some(value).filter(|value| !value.trim().is_empty())
}

/// A variable of OpenTelemetry's exporters: that of traces, else that of all signals.
fn variable(name: &str) -> Option<String> {
    let traces = set(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"));
    traces.or_else(|| set(&format!("OTEL_EXPORTER_OTLP_{name}")))
}

/// The receiver that the environment names. The path of traces is below OTEL_EXPORTER_OTLP_ENDPOINT,
/// as the specification has it.
pub fn endpoint() -> Option<String> {
    set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(|| {
        let base = set("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        Some(format!("{}/v1/traces", base.trim_end_matches('/')))
    })
}

/// The format that the environment names.
///
/// # Errors
/// A protocol that is not spoken, in words.
pub fn protocol() -> Result<Format, String> {
    match variable("PROTOCOL").as_deref().map(str::trim) {
        None | Some("http/protobuf") => Ok(Format::Otlp),
        Some("http/json") => Ok(Format::OtlpJson),
        Some(other) => Err(format!(
            "OTEL_EXPORTER_OTLP_PROTOCOL={}: http/protobuf and http/json are spoken",
            escape::text(other.as_bytes())
        )),
    }
}

/// The attributes of the resource that the environment has.
pub fn resource() -> Vec<(String, String)> {
    let all = std::env::var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let mut given: Vec<(String, String)> = headers(&all)
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    if let Some(name) = set("OTEL_SERVICE_NAME") {
        given.retain(|(known, _)| known != "service.name");
        given.push(("service.name".to_owned(), name));
    }
    let escaped = given.into_iter();
    let escaped =
        escaped.map(|(name, value)| [name, value].map(|text| escape::text(text.as_bytes())));
    escaped.map(|[name, value]| (name, value)).collect()
}

/// Sends an export of OTLP.
pub fn otlp(
    url: &str,
    format: Format,
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> ExitCode {
    let shown = escape::text(url.as_bytes());
    match send(url, format, write) {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => {
            eprintln!("tr: {shown} did not accept the export");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tr: cannot send to {shown}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn send(
    url: &str,
    format: Format,
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> io::Result<std::process::ExitStatus> {
    let target = target(url)?;
    let mut body = tempfile::tempfile()?;
    let mut out = io::BufWriter::new(&body);
    write(&mut out)?;
    out.flush()?;
    drop(out);
    body.seek(SeekFrom::Start(0))?;
    // The configuration of curl has the headers: a command line is no place for secrets.
    let mut settings = tempfile::NamedTempFile::new()?;
    settings.write_all(config(&target, format)?.as_bytes())?;
    let curl = Command::new("curl")
        .args(["--disable", "--config"])
        .arg(settings.path())
        .stdin(Stdio::from(body))
        .stdout(Stdio::null())
        .status();
    curl.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            error.kind(),
            "curl is not installed. Send a file instead: -o FILE",
        ),
        _ => error,
    })
}

/// The URL, with the path of OTLP's traces if it has none.
fn target(url: &str) -> io::Result<String> {
    let bad = || {
        let text = "the URL does not begin with http:// or https://";
        io::Error::new(io::ErrorKind::InvalidInput, text)
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
    if !matches!(scheme, "http" | "https") || rest.is_empty() {
        return Err(bad());
    }
    Ok(match rest.split_once('/') {
        None => format!("{url}/v1/traces"),
        Some((_, "")) => format!("{url}v1/traces"),
        Some(_) => url.to_owned(),
    })
}

/// curl's configuration.
fn config(url: &str, format: Format) -> io::Result<String> {
    let kind = match format {
        Format::OtlpJson => "application/json",
        _ => "application/x-protobuf",
    };
    let mut lines = vec![
        "silent".to_owned(),
        "show-error".to_owned(),
        "fail".to_owned(),
        "globoff".to_owned(),
        format!("max-time = {ATTEMPT}"),
        format!("retry = {RETRIES}"),
        format!("retry-max-time = {LAST}"),
        "retry-connrefused".to_owned(),
        "data-binary = \"@-\"".to_owned(),
        format!("url = {}", quoted(url)?),
        format!("header = {}", quoted(&format!("content-type: {kind}"))?),
    ];
    for (name, value) in headers(&variable("HEADERS").unwrap_or_default()) {
        lines.push(format!("header = {}", quoted(&format!("{name}: {value}"))?));
    }
    Ok(lines.join("\n") + "\n")
}

/// A value of curl's configuration.
fn quoted(value: &str) -> io::Result<String> {
    if value.contains(char::is_control) {
        let text = "a control character in the URL or in a header";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(format!(
        "\"{}\"",
        value.replace('\\', "\\\\").replace('"', "\\\"")
    ))
}

/// Headers of the variable: `name=value,name=value`, values with %-escapes.
fn headers(text: &str) -> impl Iterator<Item = (&str, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let text = |value: &str| String::from_utf8_lossy(&decoded(value.trim())).into_owned();
    pairs.map(move |(name, value)| (name.trim(), text(value)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn urls_without_a_path_are_completed() {
        let whole = "http://localhost:4318/v1/traces";
        assert_eq!(target("http://localhost:4318").unwrap(), whole);
        assert_eq!(target("http://localhost:4318/").unwrap(), whole);
        assert_eq!(target("https://a/b").unwrap(), "https://a/b");
        for bad in ["", "localhost:4318", "file:///etc/passwd", "https://"] {
            assert!(target(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn settings_hold_any_header() {
        let all: Vec<_> = headers("a=b%20c, d = \"e\\%2,f, g=%+f").collect();
        let want = [("a", "b c"), ("d", "\"e\\%2"), ("g", "%+f")];
        assert_eq!(all, want.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(quoted("\"\\").unwrap(), "\"\\\"\\\\\"");
        assert!(quoted("a\nurl = b").is_err());
    }
}
