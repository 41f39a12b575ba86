//! The names of processes that manage containers (daemons, runtimes, clients), or that serve the machine and not a
//! build.

/// The size in bytes of a task's name in the kernel (16), with the 0 at its end.
const COMM: usize = 16;

/// The role of a process (`enum part` in names.bpf.h): it manages containers as a daemon, a runtime or a client, or it
/// serves the machine.
#[derive(Clone, Copy)]
enum ProcessRole {
    /// The process is a daemon that starts containers for clients.
    Daemon = 1,
    /// The process is a container's runtime (such as runc), which is executed for each container.
    Runtime = 2,
    /// The process is a client that sends requests to a daemon.
    Client = 3,
    /// The process serves the machine or a login session, and not a build.
    System = 4,
}

/// For each role of a process, the names of the processes with this role, as the kernel has them: cut after 15 bytes.
/// For podman the daemon is podman itself (podman-system-service).
const ROLE_NAMES: [(ProcessRole, &str); 6] = [
    (ProcessRole::Daemon, "dockerd,containerd,podman,buildkitd"),
    (
        ProcessRole::Runtime,
        "containerd-shim,runc,crun,youki,conmon,buildkit-runc",
    ),
    (
        ProcessRole::Client,
        "docker,docker-compose,docker-buildx,podman-remote,nerdctl,buildctl,ctr,crictl",
    ),
    // Services of the machine: init, the message bus, the log, name services.
    (
        ProcessRole::System,
        "init,systemd,systemd-journal,systemd-resolve,systemd-logind,systemd-udevd,systemd-userdbd,\
         systemd-userwor,systemd-network,systemd-machine,systemd-hostnam,systemd-timedat,dbus-daemon,\
         dbus-broker,dbus-broker-lau,polkitd,rsyslogd,nscd,sssd,sssd_nss,sssd_pam,sssd_be,nslcd,\
         winbindd,NetworkManager,dnsmasq,lxcfs,docker-proxy",
    ),
    // The programs of login sessions, terminals and displays.
    (
        ProcessRole::System,
        "sshd,sshd-session,ssh-agent,gpg-agent,gnome-keyring-d,tmux: server,screen,gnome-terminal-,\
         konsole,xterm,alacritty,kitty,wezterm-gui,foot,Xorg,Xwayland,Xvfb,gnome-shell,kwin_wayland,\
         kwin_x11,sway,weston,pipewire,pulseaudio",
    ),
    // CI agents that are no ancestors of COMMAND.
    (
        ProcessRole::System,
        "Runner.Listener,Runner.Worker,gitlab-runner,buildkite-agent",
    ),
];

/// The entries of the BPF map from process names to their roles: the number of entries, the keys and the
/// values.
pub(crate) fn all() -> (u32, Vec<u8>, Vec<u8>) {
    let (mut count, mut keys, mut values) = (0, Vec::new(), Vec::new());
    for (part, names) in ROLE_NAMES {
        for name in names.split(',') {
            let mut key = [0; COMM];
            let place = key.iter_mut().take(COMM - 1);
            place.zip(name.bytes()).for_each(|(to, byte)| *to = byte);
            keys.extend_from_slice(&key);
            values.extend_from_slice(&(part as u32).to_ne_bytes());
            count += 1;
        }
    }
    (count, keys, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_has_room_for_the_names_and_no_name_is_cut() {
        let (count, keys, values) = all();
        assert!(count <= 128);
        assert_eq!(keys.len(), count as usize * COMM);
        assert_eq!(values.len(), count as usize * 4);
        let mut names: Vec<&str> = ROLE_NAMES
            .iter()
            .flat_map(|(_, names)| names.split(','))
            .collect();
        assert!(names.iter().all(|name| name.len() < COMM));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count as usize);
    }
}
