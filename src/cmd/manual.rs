//! Implements `tr man`, which makes the manual from the same definitions as the command line itself.

use std::path::PathBuf;
use std::process::ExitCode;

use tr_text::called::SECOND_NAME;

use crate::errors::Done;
use crate::subcommand::{Program, Subcommand};
use crate::{called, errors, output};

/// Write tr's manual pages into a directory
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The pages are named tr-record.1, tr-analyze.1, …; the first is tr-trace.1, as another
program has tr.1.

Example:
  tr man /usr/local/share/man/man1")]
pub struct ManArgs {
    /// The directory; it is created if needed
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl Subcommand for ManArgs {
    fn run(self, program: &Program) -> Done {
        pages(called::command(program.rows))
            .and_then(|pages| write(&self, pages))
            .map_err(|error| {
                message!("{}: {error}", errors::shown(&self.dir));
                ExitCode::FAILURE
            })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn write(args: &ManArgs, pages: Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    std::fs::create_dir_all(&args.dir)?;
    for (name, page) in pages {
        output::public(&args.dir.join(name), &page)?;
    }
    Ok(())
}

/// The manual pages of `tr`, as file names with their contents: one page for the program and one for
/// each subcommand.
fn pages(cli: clap::Command) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut cli = cli.disable_help_subcommand(true);
    cli.build();
    let commands = cli.get_subcommands().cloned();
    // The first page is a file named tr-trace.1, but its text says `tr` and refers to tr-record(1) and so on.
    let first = (format!("{SECOND_NAME}.1"), cli.clone());
    let others = commands.map(|command| {
        (
            format!("{}.1", command.get_display_name().unwrap_or_default()),
            command,
        )
    });
    let all = std::iter::once(first).chain(others);
    all.map(|(file, command)| {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        Ok((file, page))
    })
    .collect()
}
