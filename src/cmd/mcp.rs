//! Implements `tr mcp`, which serves the analysis to agents by the Model Context Protocol on standard input and output.

use std::process::ExitCode;

use tr_mcp::server::Server;
use tr_mcp::tool::AgentTool;
use tr_report::reports::ReportKind;

use crate::errors::{self, Done};
use crate::open;
use crate::subcommand::{Program, Row, Subcommand};

/// Answer an agent's questions about recordings (Model Context Protocol)
///
/// Reads requests from standard input and writes answers to standard output, at most 8 KB each. It
/// opens recordings below the working directory alone, and writes nothing.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Offer the tool record, which runs any command of the agent's
    #[arg(long)]
    allow_record: bool,
}

/// The last paragraphs of `tr mcp --help`: the exit status and an example of an agent's configuration.
const HELP: &str = "\
docs/SKILL.md tells an agent how to use them.

Exit status: 0 at the end of standard input; 1 when standard output cannot be written.

Example, for an agent's list of servers:
  {\"mcpServers\": {\"tr\": {\"command\": \"tr\", \"args\": [\"mcp\"]}}}";

/// The tools that `tr mcp` offers to agents: all tools that the definitions of the subcommands declare.
fn tools(rows: &[Row]) -> impl Iterator<Item = &'static AgentTool> + '_ {
    let built = rows.iter().filter_map(|row| row.built.as_ref());
    built.flat_map(|built| built.tools)
}

impl Subcommand for Args {
    fn complete(command: clap::Command, rows: &[Row]) -> clap::Command {
        let of_user = |tool: &&AgentTool| tool.records();
        let (permitted, others): (Vec<&AgentTool>, Vec<&AgentTool>) =
            tools(rows).partition(of_user);
        let names = |tools: &[&AgentTool]| {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
            names.join(", ")
        };
        let list = format!(
            "Tools: {}; with --allow-record, {}.\n{HELP}",
            names(&others),
            names(&permitted)
        );
        command.after_help(list)
    }

    fn run(self, program: &Program) -> Done {
        Ok(serve(&self, program.rows))
    }
}

fn serve(args: &Args, rows: &[Row]) -> ExitCode {
    let root = std::env::current_dir().and_then(std::fs::canonicalize);
    let root = match root {
        Ok(root) => root,
        Err(error) => {
            message!("the working directory: {error}");
            return ExitCode::from(errors::UNREADABLE_STATUS);
        }
    };
    let server = Server {
        root,
        records: args.allow_record,
        tools: tools(rows).collect(),
        reports: ReportKind::by_topic().map(ReportKind::name).collect(),
        recording: open::DEFAULT_FILE,
    };
    open::print_by(|out| server.serve(&mut std::io::stdin().lock(), out))
}
