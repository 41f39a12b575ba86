//! Confines a subcommand that only prints: before it reads a trace, it gives up access to other files, programs, the
//! network, and signals to other processes. The kernel enforces that by Landlock (Linux 5.13 and later). Without
//! Landlock nothing changes.

use std::path::Path;

use landlock::{
    path_beneath_rules, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, Scope, ABI,
};

/// The newest version of Landlock (Linux's access control) that this program knows. An older kernel enforces less.
const KNOWN_ABI: ABI = ABI::V6;

/// Restricts this thread, and the threads that it starts from now on, to reading `files`, /proc and /sys. If one of
/// `files` is a pipe or standard input (`-`), temporary files may still be written, because its trace is stored in one.
pub fn to_reading(files: &[&Path]) {
    // Without Landlock in the kernel, or after another error, the trace is read without this protection.
    let _ = restrict(files);
}

fn restrict(files: &[&Path]) -> Result<(), RulesetError> {
    // Only a trace from a pipe is stored in a temporary file.
    let is_stored =
        |file: &&Path| std::fs::metadata(file).is_ok_and(|meta| meta.is_file() || meta.is_dir());
    let temporary = (!files.iter().all(is_stored)).then(std::env::temp_dir);
    let read = AccessFs::from_read(KNOWN_ABI) & !AccessFs::Execute;
    // /proc and /sys show the memory, for `--max-memory`, and the CPUs, for the number of threads.
    let facts = ["/proc", "/sys"].map(Path::new);
    Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN_ABI))?
        .handle_access(AccessNet::from_all(KNOWN_ABI))?
        .scope(Scope::from_all(KNOWN_ABI))?
        .create()?
        .add_rules(path_beneath_rules(files.iter().chain(&facts), read))?
        .add_rules(path_beneath_rules(
            temporary,
            AccessFs::from_all(KNOWN_ABI) & !AccessFs::Execute,
        ))?
        .restrict_self()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn only_the_named_files_stay_readable() {
        let dir = tempfile::tempdir().unwrap();
        let (named, other) = (dir.path().join("named"), dir.path().join("other"));
        std::fs::write(&named, "x").unwrap();
        std::fs::write(&other, "x").unwrap();
        let confined = std::thread::spawn(move || {
            if restrict(&[&named]).is_err() || File::open(&other).is_ok() {
                return None; // a kernel without Landlock
            }
            let denied = |error: std::io::Error| error.kind() == ErrorKind::PermissionDenied;
            Some((
                File::open(&named).is_ok(),
                File::open(&other).is_err_and(denied),
                File::create(&named).is_err_and(denied),
                std::fs::read("/proc/self/statm").is_ok(),
                std::process::Command::new("/bin/true")
                    .spawn()
                    .is_err_and(denied),
                std::net::TcpListener::bind("127.0.0.1:0").is_err(),
            ))
        });
        match confined.join().unwrap() {
            Some((named, other, written, facts, ran, _)) => {
                assert!(named && other && written && facts && ran);
            }
            None => eprintln!("no Landlock here"),
        }
        assert!(
            File::open("/proc/self/maps").is_ok(),
            "other threads stay as they were"
        );
    }
}
