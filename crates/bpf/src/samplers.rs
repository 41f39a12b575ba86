//! Samples stacks. On each CPU a perf event of the CPU's clock calls a BPF program that records the stack of
//! the running task. Two more programs record the stacks of waits.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libbpf_rs::libbpf_sys::{
    bpf_link_create, perf_event_attr, BPF_PERF_EVENT, PERF_COUNT_SW_CPU_CLOCK,
    PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE,
};

use crate::error::{failed, missing, own, Error};
use crate::load::LoadedPrograms;
use crate::settings::Sampling;
use crate::skel::TracerSkel;

/// The ioctl(2) numbers for perf events in include/uapi/linux/perf_event.h: `_IO('$', 0)` and `_IOW('$', 8,
/// __u32)`.
const IOC_ENABLE: libc::Ioctl = 0x2400;
const IOC_SET_BPF: libc::Ioctl = 0x4004_2408;

impl Sampling {
    /// The largest number of stack samples a second that may be requested for each CPU.
    pub const MOST: u32 = 10_000;

    /// The time between two stack samples of a CPU in ns.
    pub fn period(&self) -> u64 {
        1_000_000_000 / u64::from(self.hz.max(1))
    }
}

/// The descriptors for recording stacks: those of the ring buffer, of the BPF programs (none if another process has
/// loaded them), and of the perf events and links that call the programs.
#[derive(Debug)]
pub struct Samplers {
    ring: OwnedFd,
    programs: Vec<OwnedFd>,
    /// The descriptors of the perf events and links that call the BPF programs. Closing one of them ends its calls.
    callers: Vec<OwnedFd>,
}

impl Samplers {
    /// Starts to sample stacks on the CPUs of the settings, except those that are offline, and to record the
    /// stacks of waits.
    pub(crate) fn start(
        skel: &TracerSkel<'_>,
        loaded: &LoadedPrograms,
        sampling: &Sampling,
        cpus: &[u16],
    ) -> Result<Samplers, Error> {
        let named = |name| loaded.get(name).ok_or_else(missing);
        let action = "attach the BPF programs";
        let mut samplers = Samplers {
            ring: own(skel.maps.sample_ring.as_fd())?,
            programs: Vec::new(),
            callers: Vec::new(),
        };
        if sampling.wait_least > 0 {
            // `make_room` is attached first, because it makes the storage that a task needs before it sleeps.
            for name in ["make_room", "waits"] {
                let program = named(name).map_err(failed(action))?;
                let link = program.attach();
                samplers
                    .callers
                    .push(link.map_err(|error| failed(action)(error.into()))?);
                samplers.programs.push(own(program.fd())?);
            }
        }
        if sampling.hz > 0 {
            let program = named("sample").map_err(failed(action))?;
            samplers.programs.push(own(program.fd())?);
            for cpu in cpus {
                samplers.add(sampling, *cpu)?;
            }
        }
        Ok(samplers)
    }

    /// Starts to sample the stacks of tasks on a CPU. Does nothing if the CPU is offline or no samples are to be
    /// taken. Fails if another process has loaded the programs.
    pub(crate) fn add(&mut self, sampling: &Sampling, cpu: u16) -> Result<(), Error> {
        if sampling.hz == 0 {
            return Ok(());
        }
        // The program that samples is the last one, because `start` adds it last.
        let Some(program) = self.programs.last() else {
            let none = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
            return Err(failed("sample stacks")(none.into()));
        };
        match open(sampling, cpu, program) {
            Ok(caller) => self.callers.push(caller),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => return Err(failed("sample stacks")(error.into())),
        }
        Ok(())
    }

    /// Takes over the stack samplers that another process has started. The descriptors are those that
    /// [`Samplers::descriptors`] returned in that process. `callers` is the number of perf events and links among the
    /// descriptors.
    pub(crate) fn from_descriptors(
        from: &mut impl Iterator<Item = OwnedFd>,
        callers: usize,
    ) -> Option<Samplers> {
        let samplers = Samplers {
            ring: from.next()?,
            programs: Vec::new(),
            callers: from.take(callers).collect(),
        };
        (samplers.callers() == callers).then_some(samplers)
    }

    /// The descriptors that another process needs to read the samples of stacks, see
    /// [`crate::Programs::descriptors`].
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        std::iter::once(&self.ring).chain(&self.callers)
    }

    pub(crate) fn callers(&self) -> usize {
        self.callers.len()
    }

    pub(crate) fn ring(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    pub(crate) fn programs(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.programs.iter().map(AsFd::as_fd)
    }

    /// Stops recording stacks. The stacks that are already in the ring buffer stay there.
    pub(crate) fn stop(&mut self) {
        self.callers.clear();
    }
}

/// Opens a perf event of a CPU's clock, for all tasks, that calls the BPF program that samples stacks. The clock of
/// software events needs no hardware counter, which virtual machines lack.
///
/// Where the kernel has links for perf events (5.15), the result is a link and not the event: a process that has the
/// descriptor of the event can change the event's period.
fn open(sampling: &Sampling, cpu: u16, program: &OwnedFd) -> std::io::Result<OwnedFd> {
    let mut attr = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        size: size_of::<perf_event_attr>() as u32,
        config: u64::from(PERF_COUNT_SW_CPU_CLOCK),
        ..Default::default()
    };
    // A period is set and not a frequency, because the kernel lowers kernel.perf_event_max_sample_rate when samples are
    // slow, and then refuses higher frequencies.
    attr.__bindgen_anon_1.sample_period = sampling.period();
    attr.set_disabled(1);
    attr.set_exclude_idle(1);
    // SAFETY: the system call reads `attr`, which contains its own size. A result that is not negative is a new
    // descriptor.
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
    // SAFETY: both descriptors are open. The calls get no pointer except a null one (no options). A result of
    // `bpf_link_create` that is not negative is a new descriptor.
    unsafe {
        let (number, program) = (event.as_raw_fd(), program.as_raw_fd());
        let link = bpf_link_create(program, number, BPF_PERF_EVENT, std::ptr::null());
        if link < 0 && libc::ioctl(number, IOC_SET_BPF, program) != 0
            || libc::ioctl(number, IOC_ENABLE, 0) != 0
        {
            return Err(std::io::Error::last_os_error());
        }
        // The link keeps the perf event open, so the descriptor of the perf event can be closed.
        Ok(if link < 0 {
            event
        } else {
            OwnedFd::from_raw_fd(link)
        })
    }
}
