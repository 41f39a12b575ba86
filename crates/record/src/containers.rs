//! The ids of containers, from their runtimes' command lines, and their names and images, from the
//! files that the runtimes keep for them. The files are read once for each container, when its
//! runtime is executed; a runtime that is not there costs nothing.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tr_format::container::Container;
use tr_format::event::Exec;

/// The most bytes of such a file.
const LONGEST: u64 = 4 << 20;
/// The most bytes of a name.
const NAME: usize = 255;

/// What a command line tells.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told<'a> {
    id: &'a [u8],
    name: &'a [u8],
    /// The directory with the container's `config.json`.
    bundle: Option<&'a [u8]>,
}

/// What a runtime's exec tells of a container.
#[derive(Debug)]
pub struct Found {
    /// What is stored of it.
    pub container: Container,
    /// The path of its cgroup, as the runtime is given it.
    pub cgroup: Option<String>,
}

/// The container of a runtime's exec, if it is one that names a container.
pub fn of(exec: &Exec) -> Option<Found> {
    let told = told(exec)?;
    let bundle = told.bundle.map(|it| PathBuf::from(OsStr::from_bytes(it)));
    let config = bundle
        .as_ref()
        .and_then(|bundle| json(&bundle.join("config.json")));
    let cgroup = config.as_ref().and_then(|it| {
        let path = it.get("linux")?.get("cgroupsPath")?.as_str()?;
        Some(path.to_owned())
    });
    let found = bundle.and_then(|bundle| names(&bundle, told.id, config.as_ref()));
    let (name, image) = found.unwrap_or_default();
    let name = match told.name {
        [] => name.unwrap_or_default().into_bytes(),
        name => name.to_vec(),
    };
    let cut = |text: &[u8]| Arc::from(text.get(..NAME).unwrap_or(text));
    let container = Container {
        tid: exec.tid,
        tgid: exec.tgid,
        id: cut(told.id),
        name: cut(&name),
        image: cut(image.unwrap_or_default().as_bytes()),
        ..Container::default()
    };
    Some(Found { container, cgroup })
}

fn told(exec: &Exec) -> Option<Told<'_>> {
    let args: Vec<&[u8]> = exec.argv.args().collect();
    let program = exec.filename.rsplit(|byte| *byte == b'/').next()?;
    let after = |options: &[&str]| {
        let is = |arg: &&[u8]| options.iter().any(|option| option.as_bytes() == *arg);
        let at = args.iter().position(is)?;
        args.get(at + 1).copied()
    };
    let told = match program {
        shim if shim.starts_with(b"containerd-shim") => Told {
            id: after(&["-id"])?,
            ..Told::default()
        },
        b"conmon" => Told {
            id: after(&["-c", "--cid"])?,
            name: after(&["-n", "--name"]).unwrap_or_default(),
            bundle: after(&["-b", "--bundle"]),
        },
        b"runc" | b"crun" | b"youki" | b"buildkit-runc" => {
            let whole = |arg: &&[u8]| matches!(*arg, b"create" | b"run" | b"start" | b"delete");
            let joins = args.contains(&&b"exec"[..]) && after(&["--process", "-p"]).is_some();
            if !joins && !args.iter().any(whole) {
                return None;
            }
            let last = args.last().copied()?;
            Told {
                id: Some(last).filter(|id| !id.starts_with(b"-"))?,
                bundle: after(&["--bundle", "-b"]),
                ..Told::default()
            }
        }
        _ => return None,
    };
    (!told.id.is_empty()).then_some(told)
}

/// A container's name and image, as far as they are known.
type Names = (Option<String>, Option<String>);

fn names(bundle: &Path, id: &[u8], config: Option<&Value>) -> Option<Names> {
    let docker = config.and_then(|config| docker_directory(config, id));
    if let Some(directory) = docker {
        return Some(of_docker(&json(&directory.join("config.v2.json"))?));
    }
    // podman and buildah: <storage>/overlay-containers/<id>/userdata.
    let storage = bundle.parent().and_then(Path::parent);
    let listed = storage.and_then(|it| json(&it.join("containers.json")));
    if let Some(names) = listed.and_then(|it| of_storage(&it, id)) {
        return Some(names);
    }
    Some(of_annotations(config?.get("annotations")?))
}

/// Docker mounts `<root>/containers/<id>/hostname` into the container.
fn docker_directory(config: &Value, id: &[u8]) -> Option<PathBuf> {
    let mounts = config.get("mounts")?.as_array()?.iter();
    let mut sources = mounts.filter_map(|mount| mount.get("source")?.as_str());
    let source = sources.find(|source| source.ends_with("/hostname"))?;
    let directory = Path::new(source).parent()?;
    (directory.file_name()?.as_bytes() == id).then(|| directory.to_owned())
}

/// A step of a build has a digest for its image, and a name that nobody has given.
fn of_docker(config: &Value) -> Names {
    let text = |value: Option<&Value>| Some(value?.as_str()?.to_owned());
    let image = text(config.get("Config").and_then(|it| it.get("Image")));
    if image.as_ref().is_some_and(|it| it.starts_with("sha256:")) {
        return (None, None);
    }
    let name = text(config.get("Name"));
    let name = name.map(|name| name.trim_start_matches('/').to_owned());
    (name, image)
}

/// `containers.json` of containers/storage.
fn of_storage(listed: &Value, id: &[u8]) -> Option<Names> {
    #[derive(Default, Deserialize)]
    struct Metadata {
        #[serde(rename = "image-name")]
        image: Option<String>,
        name: Option<String>,
    }
    let is = |it: &&Value| it.get("id").and_then(Value::as_str) == std::str::from_utf8(id).ok();
    let container = listed.as_array()?.iter().find(is)?;
    let metadata = container.get("metadata").and_then(Value::as_str);
    let metadata: Metadata = metadata
        .and_then(|it| serde_json::from_str(it).ok())
        .unwrap_or_default();
    let first = || Some(container.get("names")?.get(0)?.as_str()?.to_owned());
    Some((metadata.name.or_else(first), metadata.image))
}

/// Annotations of CRI's containers and of nerdctl's.
fn of_annotations(annotations: &Value) -> Names {
    let first = |keys: [&str; 2]| {
        let mut values = keys.iter().filter_map(|key| annotations.get(key)?.as_str());
        values.next().map(str::to_owned)
    };
    (
        first(["io.kubernetes.cri.container-name", "nerdctl/name"]),
        first(["io.kubernetes.cri.image-name", "nerdctl/image"]),
    )
}

/// A file of JSON. Whatever stands at its place, this does not wait.
fn json(path: &Path) -> Option<Value> {
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY | nix::libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > LONGEST {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
#[path = "tests/containers.rs"]
mod tests;
