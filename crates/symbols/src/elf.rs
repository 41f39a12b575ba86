//! Finds the functions of ELF files with blazesym.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;

use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};

use crate::{Answer, Function, Module, Request};

/// The directories in which the dynamic loader (ld.so) usually finds libraries.
const LIBRARIES: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
    "/usr/local/lib",
];

/// Finds the functions of those requested frames that are in ELF files, and sends them as answers. The symbol tables
/// of all files are read first, because that is quick. The debug information, where there is any, then adds source
/// lines and inlined functions.
pub fn answer(
    request: &Request,
    send: &mut impl FnMut(Answer) -> io::Result<()>,
) -> io::Result<()> {
    let mut wanted: HashMap<&[u8], &Module> = request
        .modules
        .iter()
        .filter(|module| !module.build_id.is_empty())
        .map(|module| (trimmed(&module.build_id), module))
        .collect();
    let mut found: Vec<ModuleFile<'_>> = request
        .modules
        .iter()
        .filter_map(|module| {
            let path = PathBuf::from(&module.file.as_ref()?.path);
            Some(ModuleFile { module, path })
        })
        .collect();
    // The libraries of a process that ended before its mappings could be read are not in the request. They are probably
    // in the usual directories of the dynamic loader (ld.so), so those directories are searched, too.
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
            send(Answer::Path(module.number, path.clone().into()))?;
            found.push(ModuleFile { module, path });
        }
    }
    if request.paths_only {
        return Ok(());
    }
    // The smallest file comes first. If a time limit ends the search, only the debug information of large files is
    // missing.
    found.sort_unstable_by_key(|found| found.path.metadata().map_or(u64::MAX, |file| file.len()));
    for lines in [false, true] {
        for file in &found {
            // Each file has a symbolizer of its own, because a symbolizer keeps in memory all that it has read of a
            // file.
            let symbolizer = Symbolizer::builder()
                .enable_auto_reload(false)
                .enable_code_info(lines)
                .enable_inlined_fns(lines)
                .build();
            functions(&symbolizer, file, lines, send)?;
        }
    }
    Ok(())
}

/// A module (a program file or library), and the path at which its file was found.
struct ModuleFile<'a> {
    module: &'a Module,
    path: PathBuf,
}

/// The paths of the shared objects in a directory.
fn shared_objects(directory: &str) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.contains(".so"))
    })
}

/// A build id without the zeros that Linux appends to a build id of less than 20 bytes.
fn trimmed(id: &[u8]) -> &[u8] {
    let end = id.iter().rposition(|byte| *byte != 0);
    end.map_or(&[], |end| id.get(..=end).unwrap_or(id))
}

fn functions(
    symbolizer: &Symbolizer,
    ModuleFile { module, path }: &ModuleFile<'_>,
    lines: bool,
    send: &mut impl FnMut(Answer) -> io::Result<()>,
) -> io::Result<()> {
    let mut elf = Elf::new(path);
    elf.debug_syms = lines;
    let offsets: Vec<u64> = module.frames.iter().map(|(_, offset)| *offset).collect();
    let source = Source::Elf(elf);
    let Ok(all) = symbolizer.symbolize(&source, Input::FileOffset(&offsets)) else {
        return Ok(());
    };
    // The file is checked after its functions were read. If the file was changed or replaced before that, the names of
    // the functions are wrong.
    if module.file.as_ref().is_some_and(|file| !file.is_there()) {
        return Ok(());
    }
    for ((frame, _), symbolized) in module.frames.iter().zip(all) {
        let Symbolized::Sym(symbol) = symbolized else {
            continue;
        };
        // If the offset may be outside of the symbol, the symbol's name would be a guess, so the name is not sent. The
        // second pass (`lines`) sends only symbols with debug information. For all other symbols it could only repeat
        // the answer of the first pass.
        let inside = symbol.size.is_some_and(|size| symbol.offset < size);
        if inside && (!lines || symbol.code_info.is_some()) {
            send(Answer::Frame(*frame, of(&symbol)))?;
        }
    }
    Ok(())
}

/// The functions of a frame, each with its source line: the function of the symbol, and then the functions that are
/// inlined at the frame's address.
fn of(symbol: &Sym<'_>) -> Vec<Function> {
    let outermost = (&*symbol.name, symbol.code_info.as_deref());
    let inlined = symbol
        .inlined
        .iter()
        .map(|function| (&*function.name, function.code_info.as_ref()));
    std::iter::once(outermost)
        .chain(inlined)
        .map(|(name, place)| {
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
