//! Gives system calls their names.

use syscalls::{aarch64, arm, x86, x86_64};

/// The name of the system call with this number on a machine of the given kind (`uname -m`, such as `x86_64`). `compat`
/// says whether a 32-bit program made the call.
pub fn name_of(machine: &str, number: u32, compat: bool) -> String {
    let at = number as usize;
    let name = match (machine, compat) {
        ("x86_64", false) => x86_64::Sysno::new(at).map(|call| call.name()),
        ("x86_64", true) => x86::Sysno::new(at).map(|call| call.name()),
        ("aarch64", false) => aarch64::Sysno::new(at).map(|call| call.name()),
        ("aarch64", true) => arm::Sysno::new(at).map(|call| call.name()),
        _ => None,
    };
    let name = name.map_or_else(|| format!("syscall_{number:#x}"), str::to_owned);
    if compat {
        format!("{name} (32-bit)")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_the_names_of_their_table() {
        assert_eq!(name_of("x86_64", 0, false), "read");
        assert_eq!(name_of("x86_64", 3, true), "read (32-bit)");
        assert_eq!(name_of("aarch64", 63, false), "read");
        assert_eq!(name_of("aarch64", 3, true), "read (32-bit)");
        assert_eq!(name_of("x86_64", 9999, false), "syscall_0x270f");
        assert_eq!(name_of("riscv64", 63, false), "syscall_0x3f");
    }
}
