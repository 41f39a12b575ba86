use super::*;

const START: Ktime = Ktime(1000);

fn read(lines: &str) -> (Vec<Mark>, Count) {
    let mut reader = Reader::new(START);
    let now = host::now();
    let events = reader.events(now, lines.as_bytes());
    let marks = events.map(|event| match event.kind {
        LifeKind::Mark(mark) => {
            let at = event.time.0 - mark.ago;
            Mark { ago: at, ..mark }
        }
        other => panic!("{other:?}"),
    });
    let marks = marks.collect();
    (marks, reader.count)
}

#[test]
fn lines_become_marks() {
    let (marks, count) = read(
        r#"{"t": 2000, "name": "test_a", "ev": "begin", "kind": "test", "id": 7, "pid": 12, "tid": 13}
           {"t":3000,"name":"test_a","ev":"end","result":"failed\n","id":"7","pid":12,"more":[1]}

           {"t":4000,"name":"é"}"#,
    );
    let text = |text: &str| text.as_bytes().into();
    let begin = Mark {
        name: text("test_a"),
        point: Point::Begin,
        ago: 2000,
        kind: text("test"),
        id: text("7"),
        pid: Some(Tid(12)),
        tid: Some(Tid(13)),
        ..Mark::default()
    };
    let end = Mark {
        point: Point::End,
        ago: 3000,
        kind: text(""),
        result: text("failed\n"),
        tid: None,
        ..begin.clone()
    };
    let moment = Mark {
        name: text("é"),
        ago: 4000,
        ..Mark::default()
    };
    assert_eq!(marks, [begin, end, moment]);
    assert_eq!((count.stored, count.missing()), (3, None));
}

#[test]
fn the_real_clock_will_do() {
    let now = host::now().0;
    let real = host::clock().real - 1_000_000;
    let (marks, _) = read(&format!(r#"{{"real": {real}, "name": "a"}}"#));
    let at = marks.first().expect("a mark").ago;
    assert!(at.abs_diff(now - 1_000_000) < 50_000_000, "{at} {now}");
}

#[test]
fn what_is_no_mark_is_counted() {
    let long = format!(r#"{{"t":2000,"name":"{}"}}"#, "x".repeat(LINE));
    let future = host::now().0 + 3_600_000_000_000;
    let lines = [
        "garbage".into(),
        "\u{0}\u{1}".into(),
        "[1]".into(),
        r#"{"t":2000}"#.into(),
        r#"{"t":2000,"name":""}"#.into(),
        r#"{"t":2000,"name":"a","ev":"middle"}"#.into(),
        r#"{"t":-1,"name":"a"}"#.into(),
        r#"{"t":1e30,"name":"a"}"#.into(),
        r#"{"t":2000,"name":"a","pid":-1}"#.into(),
        long,
        r#"{"name":"a"}"#.into(),
        r#"{"t":999,"name":"a"}"#.into(),
        format!(r#"{{"t":{future},"name":"a"}}"#),
        r#"{"t":2000,"name":"good"}"#.into(),
    ];
    let (marks, count) = read(&lines.join("\n"));
    assert_eq!(marks.len(), 1);
    let want = Count {
        stored: 1,
        no_marks: 11,
        wrong_times: 2,
        ..Count::default()
    };
    assert_eq!(count, want);
    let said = "left out of $TR_MARKS: 11 × no mark, 2 × a time outside of the recording";
    assert_eq!(count.missing().as_deref(), Some(said));
}

#[test]
fn a_flood_is_cut() {
    let mut reader = Reader::new(START);
    reader.count.stored = MARKS - 1;
    let lines = "{\"t\":2000,\"name\":\"a\"}\n".repeat(3);
    assert_eq!(reader.events(host::now(), lines.as_bytes()).count(), 1);
    assert_eq!((reader.count.stored, reader.count.too_many), (MARKS, 2));
}

/// Tests the marks of a program in another time namespace, where programs read another clock.
#[test]
fn marks_of_another_time_namespace_have_the_kernels_times() {
    let (start, end) = (Ktime(1_000), Ktime(9_000));
    let mut clocks = Clocks::new(500);
    let of =
        |clocks: &Clocks, pid: Option<u32>, time: u64| clocks.of_program(pid, time, start, end);
    assert_eq!(of(&clocks, None, 2_500), Some(2_000));
    assert_eq!(of(&clocks, None, 102_000), None);
    let clock = |pids: [u32; 2], offset: i128| ProgramClock { pids, offset };
    clocks.take(clock([70, 7], 100_000));
    // The process whose clock is known has the pid 70 for the kernel and the pid 7 in its own pid namespace. The time
    // of a mark with another pid, or without a pid, is read by the same clock, because no other known clock gives a
    // time inside the recording.
    for pid in [Some(70), Some(7), Some(8), None] {
        assert_eq!(of(&clocks, pid, 102_000), Some(2_000), "{pid:?}");
    }
    assert_eq!(
        of(&clocks, Some(8), 2_500),
        Some(2_000),
        "the recorder's clock"
    );
    assert_eq!(
        of(&clocks, Some(7), 2_500),
        None,
        "never the recorder's clock"
    );
    clocks.take(clock([80, 8], 101_000));
    assert_eq!(of(&clocks, None, 105_000), None, "both fit");
    assert_eq!(of(&clocks, Some(8), 105_000), Some(4_000));
    clocks.take(clock([90, 90], -5_000));
    assert_eq!(of(&clocks, Some(90), 1_000), Some(6_000));
}

/// Tests that the clocks of ended processes are forgotten, even if their pids are used again and if far more
/// processes end than can be remembered at once.
#[test]
fn clocks_of_ended_processes_are_forgotten() {
    let mut clocks = Clocks::new(500);
    let clock = |pids: [u32; 2]| ProgramClock {
        pids,
        offset: 100_000,
    };
    let of = |clocks: &Clocks, pid: u32| {
        clocks.of_program(Some(pid), 102_000, Ktime(1_000), Ktime(200_000))
    };
    for process in 1_000..200_000 {
        clocks.take(clock([process, 7]));
        assert_eq!(of(&clocks, process), Some(2_000), "{process}");
        clocks.end(Tgid(process));
        assert_eq!(of(&clocks, process), Some(2_000), "its last marks");
        clocks.forget_ended();
    }
    assert!(clocks.processes.is_empty() && clocks.ended.is_empty());
    // The clocks of these processes are forgotten, so the times of their marks are taken for times of the recorder's
    // clock.
    for pid in [1_000, 7] {
        assert_eq!(of(&clocks, pid), Some(101_500), "{pid}");
    }
    // The process with the pid 70 ends. A new process gets the pid 70 before the recorder forgets the clock of the
    // ended process.
    clocks.take(clock([70, 7]));
    clocks.end(Tgid(70));
    clocks.take(clock([70, 8]));
    clocks.forget_ended();
    assert_eq!(of(&clocks, 70), Some(2_000));
    // Another process has the pid 8 in its own pid namespace.
    clocks.take(clock([71, 8]));
    clocks.end(Tgid(70));
    clocks.forget_ended();
    assert_eq!(of(&clocks, 8), Some(2_000));
}
