//! The samplers of stacks: on each CPU a perf event of the CPU's clock, which calls the program.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libbpf_rs::libbpf_sys::{
    perf_event_attr, PERF_COUNT_SW_CPU_CLOCK, PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE,
};

use crate::tracer::skel::TracerSkel;
use crate::tracer::{failed, own, Sampling};
use crate::Error;

/// include/uapi/linux/perf_event.h: `_IO('$', 0)` and `_IOW('$', 8, __u32)`.
const IOC_ENABLE: libc::Ioctl = 0x2400;
const IOC_SET_BPF: libc::Ioctl = 0x4004_2408;

impl Sampling {
    /// The most samples a second.
    pub const MOST: u32 = 10_000;

    /// The time between two samples in ns.
    pub fn period(&self) -> u64 {
        1_000_000_000 / u64::from(self.hz.max(1))
    }
}

/// The events, the program and its ring, as descriptors. The close of an event ends its samples.
#[derive(Debug)]
pub struct Samplers {
    ring: OwnedFd,
    program: OwnedFd,
    events: Vec<OwnedFd>,
}

impl Samplers {
    /// Starts to sample on these CPUs. One that went offline is left out.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Bpf`].
    pub(crate) fn start(
        skel: &TracerSkel<'_>,
        sampling: &Sampling,
        cpus: &[u16],
    ) -> Result<Samplers, Error> {
        let program = own(skel.progs.sample.as_fd())?;
        let mut events = Vec::new();
        for cpu in cpus {
            match open(sampling, *cpu, &program) {
                Ok(event) => events.push(event),
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => return Err(failed("sample stacks")(error.into())),
            }
        }
        Ok(Samplers {
            ring: own(skel.maps.sample_ring.as_fd())?,
            program,
            events,
        })
    }

    /// From the descriptors that [`Samplers::descriptors`] names, of so many CPUs.
    pub(crate) fn from_descriptors(
        from: &mut impl Iterator<Item = OwnedFd>,
        cpus: usize,
    ) -> Option<Samplers> {
        let samplers = Samplers {
            ring: from.next()?,
            program: from.next()?,
            events: from.take(cpus).collect(),
        };
        (samplers.events.len() == cpus).then_some(samplers)
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        [&self.ring, &self.program].into_iter().chain(&self.events)
    }

    pub(crate) fn cpus(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn ring(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    pub(crate) fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Ends the samples; the ring keeps those that it has.
    pub(crate) fn stop(&mut self) {
        self.events.clear();
    }
}

/// An event of the CPU's clock, for all tasks. The clock of software events needs no counter of
/// the hardware, which virtual machines lack.
fn open(sampling: &Sampling, cpu: u16, program: &OwnedFd) -> std::io::Result<OwnedFd> {
    let mut attr = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        size: size_of::<perf_event_attr>() as u32,
        config: u64::from(PERF_COUNT_SW_CPU_CLOCK),
        ..Default::default()
    };
    // A period, not a frequency: kernel.perf_event_max_sample_rate falls when samples are slow.
    attr.__bindgen_anon_1.sample_period = sampling.period();
    attr.set_disabled(1);
    attr.set_exclude_idle(1);
    // SAFETY: a system call that reads `attr`, of which it knows the size; a result that is not
    // negative is a new descriptor.
    let event = unsafe {
        let (any_task, no_group): (RawFd, RawFd) = (-1, -1);
        let fd = libc::syscall(
            libc::SYS_perf_event_open,
            &raw mut attr,
            any_task,
            libc::c_int::from(cpu),
            no_group,
            libc::c_ulong::from(PERF_FLAG_FD_CLOEXEC),
        );
        let fd = RawFd::try_from(fd).unwrap_or(-1);
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: system calls on open descriptors; the second argument is a number.
    let done = unsafe {
        let event = event.as_raw_fd();
        match libc::ioctl(event, IOC_SET_BPF, program.as_raw_fd()) {
            0 => libc::ioctl(event, IOC_ENABLE, 0),
            refused => refused,
        }
    };
    match done {
        0 => Ok(event),
        _ => Err(std::io::Error::last_os_error()),
    }
}
