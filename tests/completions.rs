//! Runs the scripts of `tr completions` in the shells themselves: they must complete COMMAND after `--`, and the second
//! value of a list. A shell that is not installed is skipped, except bash.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // of our own output

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{ensure, Failure, TR};

/// Makes a directory with the program under both names, the completion script for a shell, and a command that can be
/// completed.
fn place(shell: &str, name: &str) -> Result<tempfile::TempDir, Failure> {
    let place = tempfile::tempdir()?;
    for name in ["tr", "tr-trace"] {
        symlink(TR, place.path().join(name))?;
    }
    let program = place.path().join("mazurka");
    std::fs::write(&program, "#!/bin/sh\n")?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode)?;
    let out = Command::new(place.path().join(name))
        .args(["completions", shell])
        .output()?;
    ensure(out.status.success(), || shell.to_owned())?;
    std::fs::write(place.path().join("script"), out.stdout)?;
    Ok(place)
}

/// The output of a shell that runs these lines; the programs of `place` come first on `PATH`.
fn prints(shell: &str, args: &[&str], place: &Path) -> Result<String, Failure> {
    let path = std::env::var("PATH")?;
    let out = Command::new(shell)
        .args(args)
        .env("PATH", format!("{}:{path}", place.display()))
        .env("HOME", place)
        .env("TERM", "dumb")
        .current_dir(place)
        .stdin(Stdio::null())
        .output()?;
    Ok(String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr))
}

fn is_installed(shell: &str) -> bool {
    let out = Command::new(shell).arg("--version").output();
    out.is_ok_and(|out| out.status.success())
}

#[test]
fn bash_completes_commands_and_lists() -> Result<(), Failure> {
    for name in ["tr", "tr-trace"] {
        let place = place("bash", name)?;
        let complete = |words: &str, current: &str, previous: &str| {
            let script = format!(
                "source ./script; COMP_WORDS=({name} {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
                complete -p {name}; $(complete -p {name} | sed 's/.*-F //; s/ .*//') {name} '{current}' '{previous}'
                printf '%s\\n' \"${{COMPREPLY[@]}}\""
            );
            prints("bash", &["-c", &script], place.path())
        };
        let has = |text: &str, word: &str| text.lines().any(|line| line == word);
        let command = complete("record -- mazu", "mazu", "--")?;
        ensure(has(&command, "mazurka"), || command.clone())?;
        let options = complete("record --ligh", "--ligh", "record")?;
        ensure(has(&options, "--light"), || options.clone())?;
        let first = complete("analyze --report dis", "dis", "--report")?;
        ensure(has(&first, "disk"), || first.clone())?;
        let next = complete("analyze --report disk,", "disk,", "--report")?;
        ensure(has(&next, "disk,tree") && !has(&next, "disk,disk"), || {
            next.clone()
        })?;
        let equal = complete("analyze --report = disk,me", "disk,me", "=")?;
        ensure(has(&equal, "disk,memory"), || equal.clone())?;
    }
    Ok(())
}

#[test]
fn fish_completes_commands_and_lists() -> Result<(), Failure> {
    if !is_installed("fish") {
        return Ok(());
    }
    for name in ["tr", "tr-trace"] {
        let place = place("fish", name)?;
        for (line, word) in [
            ("record -- mazu", "mazurka"),
            ("analyze --report disk,", "disk,tree"),
            ("analyze --report dis", "disk"),
        ] {
            let script = format!("source ./script; complete -C '{name} {line}'");
            let text = prints("fish", &["--no-config", "-c", &script], place.path())?;
            let mut words = text.lines().filter_map(|line| line.split('\t').next());
            ensure(words.any(|known| known == word), || {
                format!("{line}: {text}")
            })?;
        }
    }
    Ok(())
}

/// zsh completes only on a terminal, so the test runs it on a pseudo-terminal of zsh's own module `zpty`.
#[test]
fn zsh_completes_commands_and_lists() -> Result<(), Failure> {
    if !is_installed("zsh") {
        return Ok(());
    }
    for name in ["tr", "tr-trace"] {
        let place = place("zsh", name)?;
        std::fs::rename(
            place.path().join("script"),
            place.path().join(format!("_{name}")),
        )?;
        for (line, word) in [
            ("record -- mazu", "record -- mazurka"),
            ("analyze --report disk,tre", "analyze --report disk,tree"),
        ] {
            // Ctrl-B prints the completed line from the shell's buffer, because the terminal shows control sequences as
            // well.
            let script = format!(
                "zmodload zsh/zpty; zpty shell zsh -f -i
                zpty -w shell 'PROMPT=; fpath=({} $fpath); autoload -U compinit; compinit -u -D'
                zpty -w shell 'line() {{ print -r -- \"line=$BUFFER\"; }}; zle -N line; bindkey \"^B\" line; echo rea\"\"dy'
                zpty -r -m shell text '*ready*'
                zpty -w -n shell $'{name} {line}\\t'; sleep 1; zpty -w -n shell $'\\x02'
                zpty -r -m shell text '*line=*{word}*' && print -r -- \"$text\"
                zpty -d shell",
                place.path().display()
            );
            let text = prints("timeout", &["60", "zsh", "-f", "-c", &script], place.path())?;
            ensure(text.contains(word), || format!("{line}: {text}"))?;
        }
    }
    Ok(())
}
