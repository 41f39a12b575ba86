//! Makes the links from the page of `tr diff` to its runs: to the page of a run, or to its recording.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use tr_insight::Recording;

use crate::cmd::report::address;
use crate::{errors, output};

/// The directory into which `tr diff --pages` writes one page for each run, and the file names that are
/// already used in it.
pub struct Pages<'a> {
    directory: &'a Path,
    force: output::Force,
    taken: BTreeSet<OsString>,
}

impl<'a> Pages<'a> {
    /// Creates the directory for the pages of the runs if it does not exist.
    pub fn new(directory: &'a Path, force: output::Force) -> Result<Pages<'a>, ExitCode> {
        let made = std::fs::create_dir_all(directory);
        made.map_err(|error| errors::unwritten(&errors::shown(directory), error))?;
        Ok(Pages {
            directory,
            force,
            taken: BTreeSet::new(),
        })
    }

    /// Writes the HTML page of one of the compared runs, named after its recording. Returns the page's path.
    pub fn write(&mut self, file: &Path, recording: &Recording) -> Result<PathBuf, ExitCode> {
        let path = self.directory.join(self.name(file));
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let shown = errors::shown(&path);
        let html = tr_report::html::render(recording, &name);
        let html = html.map_err(|error| errors::unwritten(&shown, error))?;
        let written = output::whole(&path, file, (output::PAGE, false), self.force, |out| {
            out.write_all(html.as_bytes())
        });
        written.map_err(|error| errors::unwritten(&shown, error))?;
        Ok(path)
    }

    /// A file name for the page of a run that no page of another run has: `main.html`, then `main-2.html` for
    /// a recording of the same name in another directory.
    fn name(&mut self, file: &Path) -> OsString {
        let stem = file.file_stem().unwrap_or_else(|| OsStr::new("run"));
        let numbers = std::iter::once(String::new()).chain((2..).map(|n| format!("-{n}")));
        let names = numbers.map(|number| {
            let mut name = stem.to_owned();
            name.push(number + ".html");
            name
        });
        let mut free = names.filter(|name| self.taken.insert(name.clone()));
        free.next().unwrap_or_default()
    }
}

/// The page of `tr` that lies beside a recording and has its name with another ending (`main.html` for
/// `main.bin`), if there is one; otherwise the recording itself.
pub fn beside(file: &Path) -> PathBuf {
    let page = file.with_extension("html");
    if is_page(&page) {
        page
    } else {
        file.to_owned()
    }
}

fn is_page(path: &Path) -> bool {
    const BEGIN: u64 = 4096;
    let read = || {
        let mut begin = Vec::new();
        let file = std::fs::File::open(path)?;
        std::io::Read::read_to_end(&mut std::io::Read::take(file, BEGIN), &mut begin)?;
        std::io::Result::Ok(begin)
    };
    path.is_file() && read().is_ok_and(|begin| (output::PAGE.is)(&begin))
}

/// The address by which the HTML file `page` links to a file; `page` is `None` if the HTML goes to standard
/// output. The address is relative, so that it stays valid if both files are moved together.
pub fn to(file: &Path, page: Option<&Path>) -> Option<String> {
    let Some(page) = page else {
        // The page goes to standard output. Most likely it will be stored in the current directory.
        return Some(address(file));
    };
    let directory = page.parent()?;
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let from = std::fs::canonicalize(directory).ok()?;
    let file = std::fs::canonicalize(file).ok()?;
    Some(address(&relative(&from, &file)))
}

/// The relative path from a directory to a file. Both arguments are absolute paths.
fn relative(from: &Path, file: &Path) -> PathBuf {
    let pairs = from.components().zip(file.components());
    let shared = pairs.take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(file.components().skip(shared)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_a_file_goes_up_to_what_both_share() {
        let way = |from: &str, file: &str| relative(Path::new(from), Path::new(file));
        assert_eq!(way("/a/b", "/a/b/c.bin"), Path::new("c.bin"));
        assert_eq!(way("/a/b", "/a/d/c.bin"), Path::new("../d/c.bin"));
        assert_eq!(way("/x", "/a/c.bin"), Path::new("../a/c.bin"));
    }

    #[test]
    fn recordings_of_one_name_have_pages_of_their_own() {
        let place = tempfile::tempdir().unwrap();
        let mut pages = Pages::new(place.path(), output::Force::default()).unwrap();
        let names =
            ["a/t.bin", "b/t.bin", "b/u", "c/t.bin"].map(|file| pages.name(Path::new(file)));
        assert_eq!(names, ["t.html", "t-2.html", "u.html", "t-3.html"]);
    }
}
