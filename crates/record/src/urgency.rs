//! Sets the scheduling priority of the recorder's threads. COMMAND keeps its own priority, because the process of
//! COMMAND is forked before any priority is changed.

use std::cell::Cell;

/// The scheduling policy and priority that a thread had before it was given a higher priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Before {
    policy: libc::c_int,
    priority: libc::c_int,
    nice: libc::c_int,
}

thread_local! {
    static BEFORE: Cell<Option<Before>> = const { Cell::new(None) };
}

/// Gives the calling thread a real-time priority. This priority is for the thread that drains the slots and rings: a
/// storm of events fills them in less than a second, and the thread runs only for a few per cent of the time. Without
/// the right to real-time scheduling the thread gets [`high`] priority, which is no error.
pub fn real_time() {
    let before = scheduling();
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: two plain system calls; `param` outlives the second.
    let done = unsafe {
        let param = libc::sched_param {
            sched_priority: libc::sched_get_priority_max(libc::SCHED_FIFO),
        };
        libc::sched_setscheduler(0, policy, &param) == 0
    };
    if !done {
        high();
    }
    BEFORE.set(before);
}

/// Gives the calling thread the highest priority below real-time tasks. This priority is for threads that pack or write
/// events, which may wait for a CPU as long as the queues for the events have room.
pub fn high() {
    if BEFORE.get().is_none() {
        BEFORE.set(scheduling());
    }
    // SAFETY: a plain system call; on Linux it applies to the calling thread.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, -20);
    }
}

/// Gives the calling thread the priority that it had before [`real_time`] or [`high`]. A thread has to call this before
/// it waits for a process. During the wait, the kernel removes the process from `/proc` (`d_invalidate`), and can spin
/// until no other thread uses the process's entry there. If the spinning thread has real-time priority on the other
/// thread's CPU, the other thread never runs.
pub fn normal() {
    let Some(before) = BEFORE.take() else { return };
    // SAFETY: two plain system calls for the calling thread; `param` outlives the first.
    unsafe {
        let param = libc::sched_param {
            sched_priority: before.priority,
        };
        // Without the flag SCHED_RESET_ON_FORK the kernel refuses the call for users who may use real-time priorities
        // only by RLIMIT_RTPRIO.
        libc::sched_setscheduler(0, before.policy | libc::SCHED_RESET_ON_FORK, &param);
        libc::setpriority(libc::PRIO_PROCESS, 0, before.nice);
    }
}

/// The present scheduling policy and priority of the calling thread; `None` if the kernel does not report them.
fn scheduling() -> Option<Before> {
    // SAFETY: plain system calls for the calling thread; `param` is a valid place for the result.
    unsafe {
        let mut param = libc::sched_param { sched_priority: 0 };
        let policy = libc::sched_getscheduler(0);
        let known = policy >= 0 && libc::sched_getparam(0, &raw mut param) == 0;
        known.then(|| Before {
            policy: policy & !libc::SCHED_RESET_ON_FORK,
            priority: param.sched_priority,
            nice: libc::getpriority(libc::PRIO_PROCESS, 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_its_priority_back() {
        for raise in [real_time, high] {
            gets_its_priority_back(raise);
        }
    }

    fn gets_its_priority_back(raise: fn()) {
        // The priority is changed in a new thread, which begins with the priority of the test's thread.
        let all = std::thread::spawn(move || {
            let before = scheduling();
            raise();
            let urgent = scheduling();
            normal();
            let after = scheduling();
            // A second call changes nothing, because the thread has its former priority already.
            normal();
            (before, urgent, after, scheduling())
        });
        let (before, urgent, after, last) = all.join().unwrap();
        assert_eq!((before, before), (after, last));
        if nix::unistd::geteuid().is_root() {
            assert_ne!(before, urgent);
        }
    }
}
