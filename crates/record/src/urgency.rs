//! The recorder's own urgency. COMMAND is not touched: it was forked before.

/// Makes the calling thread run before everything else that wants the CPU: the
/// one that empties the rings, which are full in a second at worst. It runs
/// for a few per cent of the time at most. Where that is not allowed, as urgent
/// as it can be made without; that is no error.
pub fn first() {
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

/// Gives the calling thread a large share, but lets real-time tasks go first:
/// the ones that pack and write, which may wait for as long as there is room.
pub fn high() {
    // SAFETY: a plain system call; of Linux's threads, it is about the calling one.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, -20);
    }
}
