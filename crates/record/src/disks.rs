//! Finds the numbers and the names of the machine's disks.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use tr_format::device::Device;
use tr_format::event::{LifeKind, Tid};

/// The number of bits of a minor number in the kernel's `dev_t` (`MINORBITS`, include/linux/kdev_t.h).
const MINOR_BITS: u32 = 20;

/// Divides a device number of the kernel's type `dev_t` into its major and minor number.
pub fn device(number: u32) -> Device {
    Device {
        major: number >> MINOR_BITS,
        minor: number & ((1 << MINOR_BITS) - 1),
    }
}

/// The file that each task waited for in its last sleep in fsync. If a task waits for the same file again, the
/// event that says so is redundant and is not stored.
#[derive(Debug, Default)]
pub struct SyncFiles(HashMap<Tid, Arc<[u8]>>);

impl SyncFiles {
    /// Notes the file of an event in which a task waits in fsync. Returns false if the event is redundant, because
    /// the task waits for the same file as before. Events of other kinds are never redundant.
    pub fn take(&mut self, kind: &LifeKind) -> bool {
        match kind {
            LifeKind::SyncFile(file) => {
                let known = self.0.insert(file.tid, Arc::clone(&file.name));
                return known.is_none_or(|name| name != file.name);
            }
            // The event shows that the tid belongs to another task from now on, or that the task executes another
            // program. So the file that is known for the tid is forgotten.
            LifeKind::Fork(fork) => self.0.remove(&fork.tid),
            LifeKind::Exec(exec) => self.0.remove(&exec.tid),
            LifeKind::Exit(exit) => self.0.remove(&exit.tid),
            _ => None,
        };
        true
    }
}

/// The names of the machine's disks, each of which is looked up once.
#[derive(Debug, Default)]
pub struct Names(HashMap<Device, Arc<[u8]>>);

impl Names {
    /// The name that a disk had at the first event about it; empty if the disk no longer existed then.
    fn of(&mut self, device: Device) -> Arc<[u8]> {
        let name = self.0.entry(device).or_insert_with(|| {
            let target = std::fs::read_link(format!("/sys/dev/block/{device}")).unwrap_or_default();
            let name = target.file_name().map_or(&[][..], OsStrExt::as_bytes);
            name.into()
        });
        Arc::clone(name)
    }

    /// Adds the name of the disk to an event about a disk. Other events stay as they are.
    pub fn take(&mut self, kind: &mut LifeKind) {
        match kind {
            LifeKind::DiskWait(wait) => {
                wait.name = wait
                    .device
                    .map_or_else(Arc::default, |device| self.of(device));
            }
            LifeKind::Block(block) => block.name = self.of(block.device),
            _ => {}
        }
    }
}
