//! Finds the numbers and the names of disks.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use tr_format::device::Device;
use tr_format::event::{LifeKind, Tid};

/// The number of bits of a minor number in the kernel's `dev_t` (`MINORBITS`, include/linux/kdev_t.h).
const MINOR_BITS: u32 = 20;

/// The device that a number of the kernel's type `dev_t` stands for.
pub fn device(number: u32) -> Device {
    Device {
        major: number >> MINOR_BITS,
        minor: number & ((1 << MINOR_BITS) - 1),
    }
}

/// The file that each task waited for in its last sleep in fsync. An event with the same file as before is redundant.
#[derive(Debug, Default)]
pub struct SyncFiles(HashMap<Tid, Arc<[u8]>>);

impl SyncFiles {
    /// Takes an event into account. Returns false if it is redundant, because the task waits for the same
    /// file as before.
    pub fn take(&mut self, kind: &LifeKind) -> bool {
        match kind {
            LifeKind::SyncFile(file) => {
                let known = self.0.insert(file.tid, Arc::clone(&file.name));
                return known.is_none_or(|name| name != file.name);
            }
            // From now on the tid is another task's, or that of one that takes over the process.
            LifeKind::Fork(fork) => self.0.remove(&fork.tid),
            LifeKind::Exec(exec) => self.0.remove(&exec.tid),
            LifeKind::Exit(exit) => self.0.remove(&exit.tid),
            _ => None,
        };
        true
    }
}

/// The names of disks, each of which is looked up once.
#[derive(Debug, Default)]
pub struct Names(HashMap<Device, Arc<[u8]>>);

impl Names {
    /// The name that a disk had at its first event; empty if the disk no longer existed.
    fn of(&mut self, device: Device) -> Arc<[u8]> {
        let name = self.0.entry(device).or_insert_with(|| {
            let target = std::fs::read_link(format!("/sys/dev/block/{device}")).unwrap_or_default();
            let name = target.file_name().map_or(&[][..], OsStrExt::as_bytes);
            name.into()
        });
        Arc::clone(name)
    }

    /// Adds the name of the disk to an event about a disk.
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
