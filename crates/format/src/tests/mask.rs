//! Unit tests of `mask`.

use crate::event::LifeEvent;
use std::collections::BTreeMap;

use super::*;
use crate::block::life::columns::common;
use crate::event::{LifeKind, KINDS};
use crate::meta::Summary;

/// A mask that replaces every text by `*`. It keeps the texts and the names of fields that it was given to mask.
#[derive(Default)]
struct Everything {
    seen: Vec<Vec<u8>>,
    fields: Vec<String>,
}

impl Mask for Everything {
    fn field(&mut self, name: &str) {
        self.fields.push(name.to_owned());
    }

    fn text(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        self.seen.push(text.to_vec());
        Some(b"*".to_vec())
    }

    fn argv(&mut self, argv: &mut Argv) {
        self.seen.push(argv.bytes.to_vec());
        *argv = Argv::from_args(["*"]);
    }

    fn command(&mut self, command: &mut Vec<Vec<u8>>) {
        self.seen.push(command.concat());
        *command = vec![b"*".to_vec()];
    }
}

fn events() -> Vec<LifeEvent> {
    let mut dice = common::Dice(7);
    let all = (0..20).flat_map(|_| {
        let mut some = common::lifecycle(5_000_000, 901, &mut dice);
        some.extend(common::recorder(5_000_000, &mut dice));
        some
    });
    let life = all.filter_map(|event| match event {
        common::Event::Life(event) => Some(event),
        common::Event::Sched(_) => None,
    });
    life.collect()
}

#[test]
fn a_mask_sees_every_text_of_every_kind_of_event() {
    let mut most = BTreeMap::new();
    for event in events() {
        let name = event.kind.name();
        let mut mask = Everything::default();
        Masked::new(event, &mut mask).unwrap();
        let count = most.entry(name).or_insert(0);
        *count = mask.seen.len().max(*count);
    }
    let kinds: Vec<_> = KINDS.into_iter().map(|(_, name)| name).collect();
    assert!(kinds.iter().all(|kind| most.contains_key(kind)));
    most.retain(|_, count| *count > 0);
    // For each kind of event, the largest number of texts that the mask gets. A command line counts as one text.
    let known = [
        ("block", 1),
        ("cgroup_path", 1),
        ("container", 3),
        ("degraded", 1),
        ("disk_wait", 1),
        ("dns_query", 1),
        ("exec", 4),
        ("fork", 1),
        ("mark", 4),
        ("module", 1),
        ("others", 8),
        ("outsider", 1),
        ("rename", 1),
        ("snapshot", 2),
        ("symbol", 4),
        ("threads", 1),
        ("sync_file", 1),
    ];
    assert_eq!(most, BTreeMap::from(known));
}

#[test]
fn a_mask_changes_nothing_but_texts() {
    struct Nothing;
    impl Mask for Nothing {
        fn text(&mut self, _: &[u8]) -> Option<Vec<u8>> {
            None
        }
        fn argv(&mut self, _: &mut Argv) {}
        fn command(&mut self, _: &mut Vec<Vec<u8>>) {}
    }
    for event in events() {
        let masked = Masked::new(event.clone(), &mut Nothing).unwrap();
        assert_eq!(*masked, event);
    }
    let masked = Masked::new(common::meta(), &mut Nothing).unwrap();
    assert_eq!(*masked, common::meta());
}

/// The mask gets the name of the disk with each event, although a frame stores the name only once.
#[test]
fn a_text_that_came_before_is_masked_again() {
    let has_device = |event: &LifeEvent| matches!(&event.kind, LifeKind::DiskWait(wait) if wait.device.is_some());
    let wait = events().into_iter().find(has_device).unwrap();
    let mut mask = Everything::default();
    for _ in 0..2 {
        Masked::new(wait.clone(), &mut mask).unwrap();
    }
    assert_eq!(mask.seen.len(), 2);
}

#[test]
fn a_mask_sees_every_text_of_the_metadata() {
    let mut meta = common::meta();
    meta.ci = vec![("CI_JOB_URL".into(), "https://h/j".into())];
    meta.not_traced = Some("no BTF".into());
    meta.recorder = Some("perf 6.1".into());
    meta.hardware = Some(vec![("cpu model".into(), "x".into())]);
    meta.missing = vec![Missing::new(None, "y")];
    meta.scope = Scope::Cgroup(b"/a".to_vec());
    meta.extras = Some(vec![0, 42]);
    let (cpus, extras) = (meta.cpus.clone(), meta.extras.clone());
    let mut mask = Everything::default();
    let masked = Masked::new(meta, &mut mask).unwrap();
    // The mask gets 16 texts: the version, the host, the kernel, the machine, the cgroup, the command, the directory,
    // two states, a missing fact; name and value of a variable; the reason, the program, name and value of a fact about
    // the hardware.
    assert_eq!(mask.seen.len(), 16);
    assert_eq!((&masked.cpus, &masked.extras), (&cpus, &extras));
    assert_eq!(masked.command, [b"*"]);
    assert_eq!(masked.cwd, b"*");
    // The name of a CI variable is itself masked (as `*`) before the mask gets it as the name of a field.
    assert!(mask.fields.contains(&"*".to_owned()), "{:?}", mask.fields);
}

#[test]
fn a_mask_sees_the_scripts_of_the_summary() {
    let script = |path: &str, text: Option<&str>| RecordedScript {
        path: path.into(),
        text: text.map(Into::into),
    };
    let summary = Summary {
        scripts: vec![script("/a", Some("export TOKEN=x")), script("/b", None)],
        ..Summary::default()
    };
    let mut mask = Everything::default();
    let masked = Masked::new(summary, &mut mask).unwrap();
    assert_eq!(mask.seen, [&b"/a"[..], b"sh-cexport TOKEN=x", b"/b"]);
    assert_eq!(masked.scripts, [script("*", Some("*")), script("*", None)]);
    assert!(mask.fields.contains(&"scripts".to_owned()));
}
