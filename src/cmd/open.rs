//! Implements `tr open`, which shows the analysis as a page in a browser.
//!
//! With a display or BROWSER the page is a private temporary file. Without both, as on a machine that the user reached
//! by ssh, the program serves the page on the loopback device, below a path that nobody can guess, until it is
//! interrupted.

use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use tiny_http::{Header, Method, Request, Response, Server};
use tr_text::units;

use super::report::{self, Page};
use crate::budget::Budget;
use crate::errors::{self, Done};
use crate::open;
use crate::span::Span;
use crate::subcommand::{Program, Subcommand};
use crate::with::With;

/// The number of random bytes in the URL path of the served page, so that nobody can guess the path: as many as a
/// cryptographic key has.
const KEY: usize = 16;

/// Open the analysis in a browser
#[derive(clap::Args, Debug)]
#[command(after_help = "\
With a display, the page is a private file below TMPDIR, which stays there, and $BROWSER,
xdg-open or wslview opens it. Without one, or with --serve, it is served on the loopback
device, below a random path, until Ctrl-C; a line says how to reach it through ssh.

Exit status: 0; 1 when the page cannot be written or served, or no browser opens it; 2 when
FILE cannot be read at all.")]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT_FILE)]
    file: PathBuf,
    /// Serve the page although there is a display
    #[arg(long)]
    serve: bool,
    /// The port to serve at [default: a free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    #[command(flatten)]
    span: Span,
    #[command(flatten)]
    with: With,
    #[command(flatten)]
    pub budget: Budget,
}

impl Subcommand for Args {
    fn run(self, _: &Program) -> Done {
        show_page(&self)
    }
}

fn show_page(args: &Args) -> Done {
    let page = report::page(
        &open::warned(&args.file)?,
        &args.file,
        &args.span,
        &args.with,
        args.budget,
    )?;
    let browsers = if args.serve || args.port > 0 {
        Vec::new()
    } else {
        browsers()
    };
    if browsers.is_empty() {
        let served = serve(args.port, &page);
        return served.map_err(|error| errors::unwritten("the page's address", error));
    }
    let file = kept(&page).map_err(|error| errors::unwritten("the page", error))?;
    let address = report::link(&file);
    let size = units::bytes(page.html.len() as u64);
    let shown = errors::shown(&file);
    message!("{shown}: {}, {size}", page.contents);
    if browsers.iter().any(|browser| starts(browser, &address)) {
        return Ok(ExitCode::SUCCESS);
    }
    message!("no browser opened it: open {address}, or try --serve");
    Ok(ExitCode::FAILURE)
}

/// The command lines that can open a page in a browser: those of the user's variable BROWSER first, then xdg-open if
/// there is a display, and wslview under WSL.
fn browsers() -> Vec<String> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let own = std::env::var("BROWSER").unwrap_or_default();
    let own = own.split(':').filter(|command| !command.trim().is_empty());
    let mut all: Vec<String> = own.map(str::to_owned).collect();
    if ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(is_set) {
        all.push("xdg-open".into());
    }
    if is_set("WSL_DISTRO_NAME") {
        all.push("wslview".into());
    }
    all
}

/// Runs a browser's command line with an address, in place of `%s` if the command line has it. Returns whether the page
/// was opened: the command ended with exit status 0, or still runs after 2 s, as a browser does.
fn starts(browser: &str, address: &str) -> bool {
    let mut words = browser.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(browser));
    if browser.contains("%s") {
        command.args(words.map(|word| word.replace("%s", address)));
    } else {
        command.args(words).arg(address);
    }
    // The messages of a browser would only disturb the user, so they are dropped.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    for _ in 0..20 {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(std::time::Duration::from_millis(100)),
            Err(_) => return false,
        }
    }
    true
}

/// Writes the HTML page into a new directory that only the user can enter. Returns the page's path.
fn kept(page: &Page) -> io::Result<PathBuf> {
    let mut directory = tempfile::Builder::new();
    let directory = directory
        .prefix("tr-open-")
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir()?;
    let file = directory.path().join("report.html");
    std::fs::write(&file, &page.html)?;
    // The directory is kept, because the browser reads the page after this program has ended.
    let directory = directory.keep();
    Ok(directory.join("report.html"))
}

/// Serves the page by HTTP on the loopback device to everybody who knows its address, until a signal ends the program.
fn serve(port: u16, page: &Page) -> io::Result<ExitCode> {
    let server = Server::http(("127.0.0.1", port)).map_err(io::Error::other)?;
    let address = server.server_addr().to_ip();
    let port = address.map_or(port, |address| address.port());
    let mut key = [0; KEY];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
    let path = format!("/{}/", units::hex(&key));
    message!("{}, until Ctrl-C:", page.contents);
    println!("http://127.0.0.1:{port}{path}");
    io::stdout().flush()?;
    if let Some(connection) = std::env::var_os("SSH_CONNECTION") {
        let by = ssh_port(&connection.to_string_lossy());
        let host = nix::unistd::gethostname().unwrap_or_default();
        let host = tr_text::escape::raw(host.as_encoded_bytes());
        message!("from your own machine: ssh {by}-L {port}:127.0.0.1:{port} {host}");
    }
    // A web page of another origin can send requests to this server, but does not know the secret path. A request that
    // names another host in its header is refused, even if that name resolves to this machine.
    let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}"));
    for request in server.incoming_requests() {
        let is_known = is_for(&request, &hosts) && request.url() == path;
        let answered = if is_known && matches!(request.method(), Method::Get | Method::Head) {
            respond(request, &page.html, 200)
        } else {
            respond(request, "not found\n", 404)
        };
        // If the browser has gone away meanwhile, the failed answer is no error.
        drop(answered);
    }
    Ok(ExitCode::SUCCESS)
}

/// The option of ssh for the server's port, which is the fourth word of `SSH_CONNECTION` (ssh(1)). Empty for the usual
/// port.
fn ssh_port(connection: &str) -> String {
    let port = connection.split_whitespace().nth(3);
    let port = port.and_then(|port| port.parse::<u16>().ok());
    let unusual = port.filter(|port| *port != 22);
    unusual.map_or(String::new(), |port| format!("-p {port} "))
}

/// Whether the `Host` header of an HTTP request is one of the names of this server. Other names that resolve to this
/// machine are refused, so that no foreign web page can read the analysis.
fn is_for(request: &Request, hosts: &[String]) -> bool {
    let mut headers = request.headers().iter();
    let host = headers.find(|header| header.field.equiv("Host"));
    host.is_some_and(|host| hosts.iter().any(|known| *known == host.value.as_str()))
}

fn respond(request: Request, text: &str, status: u16) -> io::Result<()> {
    let kind = if status == 200 { "html" } else { "plain" };
    let kind = format!("text/{kind}; charset=utf-8");
    let fields = [
        ("Content-Type", kind.as_str()),
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Content-Type-Options", "nosniff"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ];
    let mut response = Response::from_string(text).with_status_code(status);
    for (name, value) in fields {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    request.respond(response)
}
