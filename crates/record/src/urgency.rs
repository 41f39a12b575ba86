//! The scheduling priority of the recorder's threads. COMMAND keeps its own: it was
//! forked before.

/// Gives the calling thread a real-time priority. It drains the rings, which a storm
/// fills in less than a second, and runs for a few per cent of the time. Without the
/// right to real-time scheduling it gets [`high`] priority; that is no error.
pub fn real_time() {
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
}

/// Gives the calling thread the highest priority below real-time tasks. It packs or
/// writes events, which may wait as long as the queues have room.
pub fn high() {
    // SAFETY: a plain system call; on Linux it applies to the calling thread.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, -20);
    }
}
