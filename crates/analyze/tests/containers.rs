//! Tests waits of a container program, such as podman, that polls whether its container has ended. The traces are built
//! from single events.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)] // in a test

mod hand;

use hand::{at, Hand, DEAD, RUNNING, SLEEPS};
use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::timeline::Actor;
use tr_format::container::Container;
use tr_format::event::{Argv, Comm, Exec, LifeKind, Tgid, Tid};
use tr_format::meta::Scope;

const PODMAN: u32 = 10;
const RUNTIME: u32 = 11;
const MAIN: u32 = 12;

fn executes(hand: &mut Hand, cpu: u16, time: i64, tid: u32, argv: &[&str]) {
    let exec = Exec {
        tid: Tid(tid),
        tgid: Tgid(tid),
        old_tid: Tid(tid),
        comm: Comm::new(argv[0].as_bytes()),
        filename: format!("/bin/{}", argv[0]).into_bytes().into(),
        argv: Argv::from_args(argv.iter().copied()),
        ..Exec::default()
    };
    hand.lives(cpu, time, LifeKind::Exec(exec));
}

/// Builds a trace in which podman polls whether its container has ended. Podman is woken from a sleep at `awake`, and
/// is on a CPU from `runs` to `stops`. Then podman sleeps again, unless `stops` is 1,500 ns or later. The container
/// ends at 1,000 ns.
///
/// ```text
/// cpu0 10==f11=f12____________________   podman; a sleep ends at `awake`
/// cpu1        11=_______________         the container's runtime
/// cpu2            12=________nap__==x    the container's main process, which ends at 1,000
/// ```
fn polling(awake: i64, runs: i64, stops: i64) -> Analysis {
    let mut hand = Hand::new(Scope::All, 2_000);
    hand.snapshot(0, PODMAN, PODMAN, 1, None);
    executes(&mut hand, 0, 10, PODMAN, &["podman", "run", "image"]);
    hand.fork(0, 20, PODMAN, RUNTIME, RUNTIME);
    hand.first_waking(0, 20, PODMAN, RUNTIME, false);
    hand.switch(0, 40, PODMAN, SLEEPS, 0);
    hand.switch(1, 30, 0, RUNNING, RUNTIME);
    executes(&mut hand, 1, 40, RUNTIME, &["runc", "run", "c1"]);
    hand.lives(
        1,
        41,
        LifeKind::Container(Box::new(Container {
            tid: Tid(RUNTIME),
            tgid: Tgid(RUNTIME),
            id: b"c1".as_slice().into(),
            ..Container::default()
        })),
    );
    hand.fork(1, 50, RUNTIME, MAIN, MAIN);
    hand.first_waking(1, 50, RUNTIME, MAIN, false);
    hand.switch(1, 60, RUNTIME, SLEEPS, 0);
    hand.switch(2, 60, 0, RUNNING, MAIN);
    executes(&mut hand, 2, 70, MAIN, &["sleep", "1"]);
    // The main process of the container sleeps from 100 to 950 ns.
    hand.switch(2, 100, MAIN, SLEEPS, 0);
    hand.waking(2, 950, 0, MAIN);
    hand.switch(2, 950, 0, RUNNING, MAIN);
    hand.exit(2, 990, MAIN, MAIN, true);
    hand.switch(2, 1_000, MAIN, DEAD, 0);
    // The sleep of podman that ends at `awake` is podman's last one, or the last but one if podman sleeps again.
    hand.waking(0, awake, 0, PODMAN);
    hand.switch(0, runs, 0, RUNNING, PODMAN);
    if stops < 1_500 {
        hand.switch(0, stops, PODMAN, SLEEPS, 0);
        hand.waking(0, 1_500, 0, PODMAN);
        hand.switch(0, 1_500, 0, RUNNING, PODMAN);
    }
    hand.exit(0, 1_700, PODMAN, PODMAN, true);
    hand.switch(0, 1_710, PODMAN, DEAD, 0);
    hand.path().0
}

fn thread(analysis: &Analysis, tid: u32) -> ThreadIx {
    let mut all = analysis.thread_ids();
    all.find(|ix| analysis.thread(*ix).tid == Tid(tid)).unwrap()
}

/// The task or interrupt that ended podman's stretch (its time in one state) around a time in ns.
fn ended_by(analysis: &Analysis, time: i64) -> Actor {
    let timeline = analysis.timeline.as_ref().unwrap();
    let podman = thread(analysis, PODMAN);
    timeline.around(podman, at(time)).unwrap().waker()
}

#[test]
fn the_sleep_in_which_a_container_ends_waits_for_it() {
    let analysis = polling(500, 500, 510);
    let main = thread(&analysis, MAIN);
    assert_eq!(ended_by(&analysis, 800), Actor::Thread(main));
    assert!(ended_by(&analysis, 1_200).is_timer());
}

/// While the container ends, podman waits for a CPU or queries the container, and does not sleep. So podman's last
/// sleep before the end counts as its wait for the container.
#[test]
fn the_sleep_before_a_query_waits_for_the_container() {
    for (awake, runs) in [(900, 1_400), (980, 980)] {
        let analysis = polling(awake, runs, 1_600);
        let main = thread(&analysis, MAIN);
        assert_eq!(ended_by(&analysis, 800), Actor::Thread(main), "{awake}");
    }
}
