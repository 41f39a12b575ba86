//! Files that appear complete or not at all.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes a new file and renames it to `path` once it is complete, so `path` can be the file
/// that is being read. A device or a pipe cannot be replaced; it is written in place.
///
/// # Errors
/// Those of `write`, and of making or renaming the file.
pub fn whole<T, E: From<std::io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return write(&mut File::options().write(true).open(path)?);
    }
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    let result = write(file.as_file_mut())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(result)
}
