//! Sends an OTLP export to its receiver by curl, which knows the machine's proxies and certificates.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::process::{Command, ExitCode, Stdio};

use tr_export::otlp::{answer, Encoding, Signal};
use tr_export::Format;
use tr_format::ci::decoded;
use tr_text::{escape, units};

/// The time limit in seconds of one attempt to send an export.
const ATTEMPT: u32 = 10;
/// The time in seconds after which no further attempt to send an export begins: a build waits for 30 s at
/// most.
const LAST_ATTEMPT: u32 = 20;
/// The number of further attempts to send an export if the receiver is unavailable or busy.
const RETRIES: u32 = 3;
/// The largest answer of a receiver that is read, in bytes. An answer of OTLP is short: a number and a
/// sentence.
const LONGEST_ANSWER: u64 = 1 << 20;
/// The format of the line with the status and the redirection that curl prints after the body of the answer,
/// in curl's notation.
const WRITE_OUT: &str = r"\n%{http_code} %{redirect_url}";

/// The value of an environment variable; `None` if it is not set or blank.
fn set(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?;
    Some(value).filter(|value| !value.trim().is_empty())
}

/// The value of a variable of OpenTelemetry's exporters: the one for this signal (traces or metrics), or
/// else the one for all signals.
fn variable(signal: Signal, name: &str) -> Option<String> {
    set(&of_signal(signal, name)).or_else(|| set(&format!("OTEL_EXPORTER_OTLP_{name}")))
}

/// The name of the OpenTelemetry variable that counts for one signal only, such as
/// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT.
fn of_signal(signal: Signal, name: &str) -> String {
    let signal = signal.name().to_uppercase();
    format!("OTEL_EXPORTER_OTLP_{signal}_{name}")
}

/// The URL of the OTLP receiver for a signal (traces or metrics), as OpenTelemetry's environment variables
/// give it. To the general OTEL_EXPORTER_OTLP_ENDPOINT, the signal's path is added, as the specification
/// requires.
pub fn endpoint(signal: Signal) -> Option<String> {
    set(&of_signal(signal, "ENDPOINT")).or_else(|| {
        let base = set("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        Some(format!(
            "{}/v1/{}",
            base.trim_end_matches('/'),
            signal.name()
        ))
    })
}

/// The format of the export (Protobuf or JSON) that OTEL_EXPORTER_OTLP_PROTOCOL names.
///
/// # Errors
/// A protocol that is not supported; the error is text for the user.
pub fn protocol() -> Result<Format, String> {
    match variable(Signal::Traces, "PROTOCOL")
        .as_deref()
        .map(str::trim)
    {
        None | Some("http/protobuf") => Ok(Format::Otlp),
        Some("http/json") => Ok(Format::OtlpJson),
        Some(other) => Err(format!(
            "OTEL_EXPORTER_OTLP_PROTOCOL={}: http/protobuf and http/json are spoken",
            escape::text(other.as_bytes())
        )),
    }
}

/// The attributes, as names and values, that OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME give to the
/// resource of the exported spans and metrics.
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

/// Sends an OTLP export to a URL. A redirect is a failure, because it is not followed. Rejected spans or data points
/// are a failure, even if the HTTP status is a success. If the body of such an answer is not OTLP, a message says so,
/// and the export counts as accepted.
pub fn otlp(
    url: &str,
    signal: Signal,
    encoding: Encoding,
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> ExitCode {
    let shown = escape::text(url.as_bytes());
    let reply = match send(url, signal, encoding, write) {
        Ok(Some(reply)) => reply,
        Ok(None) => {
            message!("{shown} did not accept the export");
            return ExitCode::FAILURE;
        }
        Err(error) => {
            message!("cannot send to {shown}: {error}");
            return ExitCode::FAILURE;
        }
    };
    if !(200..300).contains(&reply.status) {
        let status = reply.status;
        message!("{shown} did not accept the export: it answered with the status {status}");
        if !reply.location.is_empty() {
            let location = escape::text(reply.location.as_bytes());
            message!("it redirects to {location}, which can be named by --endpoint");
        }
        return ExitCode::FAILURE;
    }
    let [one, several] = signal.parts();
    match answer::read(encoding, &reply.body) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(answer)) => {
            let message = escape::text(answer.message.as_bytes());
            if answer.rejected == 0 {
                message!("{shown} took all {several} and says: {message}");
                return ExitCode::SUCCESS;
            }
            let parts = units::plural(answer.rejected, one, several);
            let reason = if message.is_empty() {
                String::new()
            } else {
                format!(": {message}")
            };
            message!("{shown} rejected {parts} of the export{reason}");
            ExitCode::FAILURE
        }
        Err(_) => {
            message!("{shown} answered with the status {}, but not as OTLP does: whether it has the {several} is not known", reply.status);
            ExitCode::SUCCESS
        }
    }
}

/// The answer of the receiver of an export: its HTTP status, redirection and body, as curl prints them.
struct Reply {
    status: u16,
    /// The URL to which the receiver's answer redirects; empty if the answer is no redirect.
    location: String,
    body: Vec<u8>,
}

/// Sends an export to a URL by running curl. Returns `None` if curl failed and has printed the reason.
fn send(
    url: &str,
    signal: Signal,
    encoding: Encoding,
    write: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> io::Result<Option<Reply>> {
    let target = target(url, signal)?;
    let mut request = tempfile::tempfile()?;
    let mut out = io::BufWriter::new(&request);
    write(&mut out)?;
    out.flush()?;
    drop(out);
    request.seek(SeekFrom::Start(0))?;
    // curl reads the headers from a configuration file, because they may be secret and others can read a command line.
    let mut settings = tempfile::NamedTempFile::new()?;
    settings.write_all(config(&target, signal, encoding)?.as_bytes())?;
    let curl = Command::new("curl")
        .args(["--disable", "--config"])
        .arg(settings.path())
        .stdin(Stdio::from(request))
        .stdout(Stdio::piped())
        .spawn();
    let mut curl = curl.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            error.kind(),
            "curl is not installed. Send a file instead: -o FILE",
        ),
        _ => error,
    })?;
    let mut output = Vec::new();
    let read = match curl.stdout.take() {
        Some(pipe) => pipe.take(LONGEST_ANSWER + 1).read_to_end(&mut output),
        None => Ok(0),
    };
    if output.len() as u64 > LONGEST_ANSWER {
        curl.kill()?;
        curl.wait()?;
        let text = format!("its answer has more than {}", units::bytes(LONGEST_ANSWER));
        return Err(io::Error::other(text));
    }
    let status = curl.wait()?;
    read?;
    Ok(reply(output).filter(|_| status.success()))
}

/// Splits the output of curl into the body of the receiver's answer and the line of [`WRITE_OUT`].
fn reply(mut output: Vec<u8>) -> Option<Reply> {
    let end = output.iter().rposition(|byte| *byte == b'\n')?;
    let line = String::from_utf8_lossy(output.get(end + 1..)?).into_owned();
    output.truncate(end);
    let (status, location) = line.split_once(' ')?;
    Some(Reply {
        status: status.parse().ok()?,
        location: location.to_owned(),
        body: output,
    })
}

/// The URL to which an OTLP export is sent: the user's URL. If the user's URL has no path, the path of the signal
/// (`/v1/traces` or `/v1/metrics`) is added to it.
fn target(url: &str, signal: Signal) -> io::Result<String> {
    let bad = || {
        let text = "the URL does not begin with http:// or https://";
        io::Error::new(io::ErrorKind::InvalidInput, text)
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
    if !matches!(scheme, "http" | "https") || rest.is_empty() {
        return Err(bad());
    }
    Ok(match rest.split_once('/') {
        None => format!("{url}/v1/{}", signal.name()),
        Some((_, "")) => format!("{url}v1/{}", signal.name()),
        Some(_) => url.to_owned(),
    })
}

/// The text of curl's configuration file for sending an export. curl reads the export itself from its standard input.
fn config(url: &str, signal: Signal, encoding: Encoding) -> io::Result<String> {
    let kind = match encoding {
        Encoding::Json => "application/json",
        Encoding::Protobuf => "application/x-protobuf",
    };
    let mut lines = vec![
        "silent".to_owned(),
        "show-error".to_owned(),
        "fail".to_owned(),
        format!("write-out = \"{WRITE_OUT}\""),
        "globoff".to_owned(),
        format!("max-time = {ATTEMPT}"),
        format!("retry = {RETRIES}"),
        format!("retry-max-time = {LAST_ATTEMPT}"),
        "retry-connrefused".to_owned(),
        "data-binary = \"@-\"".to_owned(),
        format!("url = {}", quoted(url)?),
        format!("header = {}", quoted(&format!("content-type: {kind}"))?),
    ];
    for (name, value) in headers(&variable(signal, "HEADERS").unwrap_or_default()) {
        lines.push(format!("header = {}", quoted(&format!("{name}: {value}"))?));
    }
    Ok(lines.join("\n") + "\n")
}

/// A value in quotes, as curl's configuration files require.
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

/// The HTTP headers in the value of OTEL_EXPORTER_OTLP_HEADERS: `name=value,name=value`, values with
/// %-escapes.
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
        let traces = |url| target(url, Signal::Traces);
        let whole = "http://localhost:4318/v1/traces";
        assert_eq!(traces("http://localhost:4318").unwrap(), whole);
        assert_eq!(traces("http://localhost:4318/").unwrap(), whole);
        assert_eq!(traces("https://a/b").unwrap(), "https://a/b");
        let metrics = target("http://localhost:4318", Signal::Metrics).unwrap();
        assert_eq!(metrics, "http://localhost:4318/v1/metrics");
        for bad in ["", "localhost:4318", "file:///etc/passwd", "https://"] {
            assert!(traces(bad).is_err(), "{bad}");
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
