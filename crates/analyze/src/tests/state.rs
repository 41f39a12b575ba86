//! Unit tests of `state`.

use super::*;

fn states() -> States {
    let table = [
        (0x1, "TASK_INTERRUPTIBLE"),
        (0x2, "TASK_UNINTERRUPTIBLE"),
        (0x4, "__TASK_STOPPED"),
        (0x40, "TASK_PARKED"),
        (0x80, "TASK_DEAD"),
        (0x100, "TASK_WAKEKILL"),
        (0x400, "TASK_NOLOAD"),
        (0x2000, "TASK_FREEZABLE"),
    ];
    let named = |(bit, name): (u16, &str)| StateName {
        bit,
        letter: '?',
        name: name.into(),
    };
    States::new(&table.map(named))
}

#[test]
fn bits_mean_what_the_trace_says() {
    let states = states();
    assert_eq!(states.wait(0x1, false, false), Wait::Sleep);
    assert_eq!(
        states.wait(0x2001, false, true),
        Wait::Sleep,
        "freezable sleep"
    );
    assert_eq!(states.wait(0x2, true, false), Wait::Io);
    assert_eq!(
        states.wait(0x102, false, true),
        Wait::Vfork,
        "killable, as vfork waits"
    );
    assert_eq!(states.wait(0x2, false, false), Wait::Blocked);
    assert_eq!(
        states.wait(0x402, false, false),
        Wait::Sleep,
        "an idle kernel thread"
    );
    assert_eq!(states.wait(0x104, false, false), Wait::Stopped);
    assert_eq!(
        states.wait(0x4001, false, false),
        Wait::Unknown,
        "an unnamed state bit"
    );
    assert!(states.is_dead(0x80) && !states.is_dead(0x2));
}
