//! Finds the ids of containers in the command lines of container runtimes, and the names and images of containers in
//! the files that the runtimes keep about them. The files are read at each exec of a runtime; on a machine without a
//! runtime this costs nothing.

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

/// The size in bytes of the largest file of a runtime that is read. Larger files are ignored.
const LARGEST_FILE: u64 = 4 << 20;
/// The number of bytes after which ids, names and images of containers are cut.
const NAME: usize = 255;

/// The parts of a container runtime's command line that name a container.
#[derive(Debug, Default, PartialEq, Eq)]
struct Arguments<'a> {
    id: &'a [u8],
    name: &'a [u8],
    /// The directory with the container's `config.json`, which the runtime's command line names.
    bundle: Option<&'a [u8]>,
}

/// A container that is named by the command line of a container runtime.
#[derive(Debug)]
pub struct RuntimeContainer {
    /// The event about the container and its runtime, as it is stored in the trace.
    pub container: Container,
    /// The path of the container's cgroup, as the container's `config.json` passes it to the runtime.
    pub cgroup: Option<String>,
}

/// The container that this exec of a container runtime names; `None` for execs of other programs.
pub fn of(exec: &Exec) -> Option<RuntimeContainer> {
    let arguments = arguments(exec)?;
    let bundle = (arguments.bundle).map(|bundle| PathBuf::from(OsStr::from_bytes(bundle)));
    let config = bundle
        .as_ref()
        .and_then(|bundle| json(&bundle.join("config.json")));
    let cgroup = config.as_ref().and_then(|config| {
        let path = config.get("linux")?.get("cgroupsPath")?.as_str()?;
        Some(path.to_owned())
    });
    let names = bundle
        .and_then(|bundle| names(&bundle, arguments.id, config.as_ref()))
        .unwrap_or_default();
    let name = match arguments.name {
        [] => names.name.unwrap_or_default().into_bytes(),
        name => name.to_vec(),
    };
    let cut = |text: &[u8]| Arc::from(text.get(..NAME).unwrap_or(text));
    let container = Container {
        tid: exec.tid,
        tgid: exec.tgid,
        id: cut(arguments.id),
        name: cut(&name),
        image: cut(names.image.unwrap_or_default().as_bytes()),
        ..Container::default()
    };
    Some(RuntimeContainer { container, cgroup })
}

/// Finds the parts of a container runtime's command line that name its container. Returns `None` for execs of
/// other programs.
fn arguments(exec: &Exec) -> Option<Arguments<'_>> {
    let args: Vec<&[u8]> = exec.argv.args().collect();
    let program = exec.filename.rsplit(|byte| *byte == b'/').next()?;
    let after = |options: &[&str]| {
        let is = |arg: &&[u8]| options.iter().any(|option| option.as_bytes() == *arg);
        let at = args.iter().position(is)?;
        args.get(at + 1).copied()
    };
    let arguments = match program {
        shim if shim.starts_with(b"containerd-shim") => Arguments {
            id: after(&["-id"])?,
            ..Arguments::default()
        },
        b"conmon" => Arguments {
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
            Arguments {
                id: Some(last).filter(|id| !id.starts_with(b"-"))?,
                bundle: after(&["--bundle", "-b"]),
                ..Arguments::default()
            }
        }
        _ => return None,
    };
    (!arguments.id.is_empty()).then_some(arguments)
}

/// The name and the image of a container, as far as they are known.
#[derive(Debug, Default, PartialEq, Eq)]
struct Names {
    name: Option<String>,
    image: Option<String>,
}

fn names(bundle: &Path, id: &[u8], config: Option<&Value>) -> Option<Names> {
    let docker = config.and_then(|config| docker_directory(config, id));
    if let Some(directory) = docker {
        return Some(of_docker(&json(&directory.join("config.v2.json"))?));
    }
    // podman and buildah keep the bundle in <storage>/overlay-containers/<id>/userdata.
    let storage = bundle.parent().and_then(Path::parent);
    let listed = storage.and_then(|storage| json(&storage.join("containers.json")));
    if let Some(names) = listed.and_then(|listed| of_storage(&listed, id)) {
        return Some(names);
    }
    Some(of_annotations(config?.get("annotations")?))
}

/// The directory of Docker's files about a container. Docker mounts the file `<root>/containers/<id>/hostname` into the
/// container, so that the list of mounts in `config` shows the directory.
fn docker_directory(config: &Value, id: &[u8]) -> Option<PathBuf> {
    let mounts = config.get("mounts")?.as_array()?.iter();
    let mut sources = mounts.filter_map(|mount| mount.get("source")?.as_str());
    let source = sources.find(|source| source.ends_with("/hostname"))?;
    let directory = Path::new(source).parent()?;
    (directory.file_name()?.as_bytes() == id).then(|| directory.to_owned())
}

/// The name and image of a container in Docker's file about it. Both are `None` for the container of a build step,
/// whose image is a digest and whose name is random.
fn of_docker(config: &Value) -> Names {
    let text = |value: Option<&Value>| Some(value?.as_str()?.to_owned());
    let image = text(config.get("Config").and_then(|config| config.get("Image")));
    if image
        .as_ref()
        .is_some_and(|image| image.starts_with("sha256:"))
    {
        return Names::default();
    }
    let name = text(config.get("Name")).map(|name| name.trim_start_matches('/').to_owned());
    Names { name, image }
}

/// The name and image of a container in the file `containers.json` of containers/storage (podman, buildah).
fn of_storage(listed: &Value, id: &[u8]) -> Option<Names> {
    #[derive(Default, Deserialize)]
    struct Metadata {
        #[serde(rename = "image-name")]
        image: Option<String>,
        name: Option<String>,
    }
    let id = std::str::from_utf8(id).ok();
    let container = (listed.as_array()?.iter())
        .find(|container| container.get("id").and_then(Value::as_str) == id)?;
    let metadata: Metadata = container
        .get("metadata")
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let first = || Some(container.get("names")?.get(0)?.as_str()?.to_owned());
    Some(Names {
        name: metadata.name.or_else(first),
        image: metadata.image,
    })
}

/// The name and image of a container in the annotations that CRI and nerdctl give it.
fn of_annotations(annotations: &Value) -> Names {
    let first = |keys: [&str; 2]| {
        let mut values = keys.iter().filter_map(|key| annotations.get(key)?.as_str());
        values.next().map(str::to_owned)
    };
    Names {
        name: first(["io.kubernetes.cri.container-name", "nerdctl/name"]),
        image: first(["io.kubernetes.cri.image-name", "nerdctl/image"]),
    }
}

/// The parsed content of a JSON file; `None` if it cannot be read or is too large. Reading it does not block, even if
/// the path names no regular file.
fn json(path: &Path) -> Option<Value> {
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY | nix::libc::O_NOFOLLOW;
    let file = (OpenOptions::new().read(true).custom_flags(flags))
        .open(path)
        .ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > LARGEST_FILE {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
#[path = "tests/containers.rs"]
mod tests;
