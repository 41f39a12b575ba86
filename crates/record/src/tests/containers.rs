//! Unit tests of `containers`, with recorded command lines of container runtimes and with copies of the runtimes'
//! files.

use tr_format::event::{Argv, Exec};

use super::*;

const ID: &str = "27dee3c4bc5e8a7e1c0f4b5a69788796a5b4c3d2e1f00112233445566778899a";

fn exec(program: &str, args: &str) -> Exec {
    let args = args.split(' ').map(|arg| arg.replace("ID", ID));
    Exec {
        filename: program.as_bytes().into(),
        argv: Argv::from_args(args),
        ..Exec::default()
    }
}

#[test]
fn a_runtimes_command_line_names_its_container() {
    let cases = [
        (
            "/usr/bin/containerd-shim-runc-v2",
            "containerd-shim-runc-v2 -namespace moby -id ID -address /run/s start",
            ID,
            "",
        ),
        (
            "/usr/sbin/runc",
            "runc --root /r --log /l --log-format json create --bundle /b --pid-file /p ID",
            ID,
            "/b",
        ),
        (
            "/usr/sbin/runc",
            "runc --log /l run --bundle /b/x3 x3",
            "x3",
            "/b/x3",
        ),
        (
            "/usr/sbin/runc",
            "runc --root /r exec --process /tmp/p --detach --pid-file /b/e.pid ID",
            ID,
            "",
        ),
        ("/usr/bin/crun", "crun delete --force ID", ID, ""),
        ("/usr/bin/crun", "crun run -b /b web", "web", "/b"),
        (
            "/usr/bin/conmon",
            "/usr/bin/conmon --api-version 1 -c ID -u ID -r /usr/bin/crun -b /b/userdata -n web",
            ID,
            "/b/userdata",
        ),
    ];
    for (program, args, id, bundle) in cases {
        let exec = exec(program, args);
        let arguments = arguments(&exec).expect(args);
        assert_eq!(arguments.id, id.as_bytes(), "{args}");
        assert_eq!(
            arguments.bundle.unwrap_or_default(),
            bundle.as_bytes(),
            "{args}"
        );
    }
    for (program, args) in [
        ("/usr/sbin/runc", "runc init"),
        ("/usr/sbin/runc", "runc --root /r state ID"),
        ("/usr/sbin/runc", "runc run --help"),
        ("/bin/sh", "sh -c run"),
    ] {
        assert_eq!(arguments(&exec(program, args)), None, "{args}");
    }
}

#[test]
fn a_runtimes_files_have_name_and_image() {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    let write = |path: &str, text: String| {
        std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        std::fs::write(at(path), text).unwrap();
    };
    let mount = at(&format!("root/containers/{ID}/hostname"));
    let config = format!(r#"{{"mounts":[{{"source":{mount:?}}}]}}"#);
    write("bundle/config.json", config);
    let own = format!("root/containers/{ID}/config.v2.json");
    write(
        &own,
        r#"{"Name":"/web","Config":{"Image":"alpine:3"}}"#.into(),
    );
    let pair = |name: &str, image: &str| {
        Some(Names {
            name: Some(name.to_owned()),
            image: Some(image.to_owned()),
        })
    };
    let id = ID.as_bytes();
    assert_eq!(named(&at("bundle"), id), pair("web", "alpine:3"));
    // The directory `bundle` describes a container with another id than `27`, so no name is found.
    assert_eq!(named(&at("bundle"), b"27"), None);
    // Docker's file about the container of a build step has a digest as the image and a random name, which are left
    // out.
    write(
        &own,
        r#"{"Name":"/calm_fox","Config":{"Image":"sha256:1"}}"#.into(),
    );
    assert_eq!(named(&at("bundle"), id), Some(Names::default()));

    let metadata = r#"{\"image-name\":\"localhost/bb:latest\",\"name\":\"web\"}"#;
    let listed = format!(r#"[{{"id":"1"}},{{"id":"{ID}","metadata":"{metadata}"}}]"#);
    write("storage/containers.json", listed);
    let userdata = at(&format!("storage/{ID}/userdata"));
    assert_eq!(named(&userdata, id), pair("web", "localhost/bb:latest"));

    write("cri/config.json", r#"{"annotations":{"io.kubernetes.cri.container-name":"job","io.kubernetes.cri.image-name":"busybox"}}"#.into());
    assert_eq!(named(&at("cri"), id), pair("job", "busybox"));
    write("cri/config.json", "{".into());
    assert_eq!(named(&at("cri"), id), None);
}

#[test]
fn a_file_that_blocks_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("config.json");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(json(&fifo), None);
}

fn named(bundle: &Path, id: &[u8]) -> Option<Names> {
    names(bundle, id, json(&bundle.join("config.json")).as_ref())
}
