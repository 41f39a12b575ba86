//! Functions of ELF files, by blazesym.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};

use crate::{Answer, Function, Module, Request};

/// The loader's usual directories.
const LIBRARIES: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
    "/usr/local/lib",
];

/// Answers the frames of files: first the names by the symbol tables, which are quick, then
/// source lines and inlined functions by the debug information, where there is any.
pub fn answer(
    request: &Request,
    tell: &mut impl FnMut(Answer) -> io::Result<()>,
) -> io::Result<()> {
    let mut wanted: HashMap<&[u8], &Module> = HashMap::new();
    let by_id = request.modules.iter().filter(|it| !it.build_id.is_empty());
    wanted.extend(by_id.map(|it| (trimmed(&it.build_id), it)));
    let files = request.modules.iter();
    let files = files.filter_map(|it| Some((it, PathBuf::from(&it.file.as_ref()?.path))));
    let mut found: Vec<_> = files.collect();
    // Short processes end before their mappings are read: their libraries are where the loader
    // finds most.
    let libraries = LIBRARIES
        .iter()
        .flat_map(|directory| shared_objects(directory));
    let mut known = HashSet::new();
    for path in request.paths.iter().map(PathBuf::from).chain(libraries) {
        if wanted.is_empty() {
            break;
        }
        if !known.insert(path.clone()) || !path.is_file() {
            continue;
        }
        let build_id = read_elf_build_id(&path).ok().flatten();
        let module = build_id.and_then(|id| wanted.remove(trimmed(&id)));
        if let Some(module) = module {
            tell(Answer::Path(module.number, path.clone().into()))?;
            found.push((module, path));
        }
    }
    if request.paths_only {
        return Ok(());
    }
    // The smallest file first: what a time limit cuts off is the debug information of a huge one.
    found.sort_unstable_by_key(|(_, path)| path.metadata().map_or(u64::MAX, |it| it.len()));
    for lines in [false, true] {
        for (module, path) in &found {
            // One at a time: a symbolizer keeps what it has read of a file.
            let symbolizer = Symbolizer::builder()
                .enable_auto_reload(false)
                .enable_code_info(lines)
                .enable_inlined_fns(lines)
                .build();
            functions(&symbolizer, (module, path), lines, tell)?;
        }
    }
    Ok(())
}

/// The shared objects of a directory.
fn shared_objects(directory: &str) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.contains(".so"))
    })
}

/// Linux keeps a build id of less than 20 bytes with zeros after it.
fn trimmed(id: &[u8]) -> &[u8] {
    let end = id.iter().rposition(|byte| *byte != 0);
    end.map_or(&[], |end| id.get(..=end).unwrap_or(id))
}

fn functions(
    symbolizer: &Symbolizer,
    (module, path): (&Module, &Path),
    lines: bool,
    tell: &mut impl FnMut(Answer) -> io::Result<()>,
) -> io::Result<()> {
    let mut elf = Elf::new(path);
    elf.debug_syms = lines;
    let offsets: Vec<u64> = module.frames.iter().map(|(_, offset)| *offset).collect();
    let source = Source::Elf(elf);
    let Ok(all) = symbolizer.symbolize(&source, Input::FileOffset(&offsets)) else {
        return Ok(());
    };
    // Behind the search: a file that has changed meanwhile has given wrong names.
    if module.file.as_ref().is_some_and(|file| !file.is_there()) {
        return Ok(());
    }
    for ((frame, _), symbolized) in module.frames.iter().zip(all) {
        let Symbolized::Sym(symbol) = symbolized else {
            continue;
        };
        // Beyond a symbol's end, or if it has none, the name would be a guess. Without debug
        // information the first answer holds.
        let inside = symbol.size.is_some_and(|size| symbol.offset < size);
        if inside && (!lines || symbol.code_info.is_some()) {
            tell(Answer::Frame(*frame, of(&symbol)))?;
        }
    }
    Ok(())
}

/// The function, then those inlined, each with the line in it.
fn of(symbol: &Sym<'_>) -> Vec<Function> {
    let names = symbol.inlined.iter().map(|it| &*it.name);
    let names = std::iter::once(&*symbol.name).chain(names);
    let places = symbol.inlined.iter().map(|it| it.code_info.as_ref());
    let places = std::iter::once(symbol.code_info.as_deref()).chain(places);
    let all = names.zip(places);
    all.map(|(name, place)| {
        let (file, line) = place.map_or_else(Default::default, line_of);
        Function {
            file,
            line,
            ..Function::named(name)
        }
    })
    .collect()
}

fn line_of(place: &CodeInfo<'_>) -> (String, u32) {
    let file = place.to_path().to_string_lossy().into_owned();
    (file, place.line.unwrap_or(0))
}
