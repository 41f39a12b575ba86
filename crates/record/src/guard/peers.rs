//! Finds the processes of this machine at the other end of a process's connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::proc::Id;

/// The largest number of sockets in `/proc/net/tcp` that are examined, which bounds the work.
const SOCKETS: usize = 1 << 16;
/// The number of the state of an established connection's socket in `/proc/net/tcp`, and the number of the state of a
/// listening socket (`TCP_ESTABLISHED` and `TCP_LISTEN` of the kernel's `tcp_states.h`).
const ESTABLISHED_STATE: &str = "01";
const LISTENING_STATE: &str = "0A";

/// The address of the other end of a connection's socket; `None` if there is no such address.
pub fn address(socket: &TcpListener) -> Option<SocketAddr> {
    let copy = OwnedFd::from(socket.try_clone().ok()?);
    TcpStream::from(copy).peer_addr().ok()
}

/// The inodes of the sockets at the other end of a local (Unix) connection. Only the path of that end is known. So
/// these are all sockets with this path: the server's listening socket, and the sockets of all connections that it has
/// accepted.
pub fn local(id: Id, socket: &TcpListener) -> Vec<u64> {
    let copy = socket.try_clone().map(OwnedFd::from);
    let peer = copy.and_then(|copy| UnixStream::from(copy).peer_addr());
    let Some(path) = peer
        .ok()
        .and_then(|peer| peer.as_pathname().map(Path::to_owned))
    else {
        return Vec::new();
    };
    let table = std::fs::read(format!("/proc/{id}/net/unix")).unwrap_or_default();
    let lines = table.split(|byte| *byte == b'\n').skip(1).take(SOCKETS);
    let found = lines.filter_map(|line| {
        let line = line.strip_suffix(path.as_os_str().as_bytes())?;
        let inode = line
            .strip_suffix(b" ")?
            .rsplit(|byte| *byte == b' ')
            .next()?;
        std::str::from_utf8(inode).ok()?.parse().ok()
    });
    found.collect()
}

/// The process that created the other end of a local (Unix) connection, or that listens there. `None` if this is the
/// machine's first process (such as systemd), because the first process listens on behalf of services that it starts
/// later.
pub fn maker(socket: &TcpListener) -> Option<Id> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).ok()?;
    // SAFETY: the kernel writes at most `length` bytes into `peer`.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    (done == 0 && peer.pid > 1).then_some(peer.pid)
}

/// The inodes of the sockets at the other end of a TCP connection within this machine: the peer's socket of the
/// connection or, as long as nobody has accepted the connection, the sockets that listen at its address.
pub fn tcp(id: Id, own: SocketAddr, peer: SocketAddr) -> Option<Vec<u64>> {
    let (own, peer) = (canonical(own), canonical(peer));
    if !peer.ip().is_loopback() && peer.ip() != own.ip() {
        return None;
    }
    let tables =
        ["tcp", "tcp6"].map(|name| std::fs::read_to_string(format!("/proc/{id}/net/{name}")));
    let tables = tables.map(Result::unwrap_or_default);
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    let sockets: Vec<Socket<'_>> = lines.take(SOCKETS).filter_map(Socket::parse).collect();
    let is_other = |socket: &&Socket<'_>| {
        socket.state == ESTABLISHED_STATE
            && (socket.own, socket.peer) == (peer, own)
            && socket.inode > 0
    };
    let listens = |socket: &&Socket<'_>| {
        let at = socket.own;
        let is_at = at.port() == peer.port() && (at.ip() == peer.ip() || at.ip().is_unspecified());
        socket.state == LISTENING_STATE && is_at
    };
    let found: Vec<u64> = sockets
        .iter()
        .filter(is_other)
        .map(|socket| socket.inode)
        .collect();
    if !found.is_empty() {
        return Some(found);
    }
    Some(
        sockets
            .iter()
            .filter(listens)
            .map(|socket| socket.inode)
            .collect(),
    )
}

/// A socket as a line of `/proc/net/tcp` describes it.
#[derive(Debug, PartialEq, Eq)]
struct Socket<'a> {
    own: SocketAddr,
    peer: SocketAddr,
    state: &'a str,
    inode: u64,
}

impl Socket<'_> {
    fn parse(line: &str) -> Option<Socket<'_>> {
        let mut words = line.split_whitespace().skip(1);
        let own = parse_address(words.next()?)?;
        let peer = parse_address(words.next()?)?;
        let state = words.next()?;
        let inode = words.nth(5)?.parse().ok()?;
        Some(Socket {
            own,
            peer,
            state,
            inode,
        })
    }
}

/// Parses an address as `/proc/net/tcp` writes it: words of 32 bits in the byte order of the machine, and the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(host.get(at..at + 8)?, 16).ok();
    let host = match host.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?.to_ne_bytes())),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let mut bytes = [0; 16];
            let places = bytes.chunks_exact_mut(4).zip(words);
            places.for_each(|(place, word)| place.copy_from_slice(&word.to_ne_bytes()));
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(canonical(SocketAddr::new(host, port)))
}

/// The address in the form in which two ends of a connection can be compared: as an IPv4 address even if a socket for
/// IPv6 has it, and without a scope.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn sockets_are_read_as_the_kernel_writes_them() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0";
        let socket = Socket::parse(line).unwrap();
        assert_eq!(socket.own, "127.0.0.1:8080".parse().unwrap());
        assert_eq!((socket.state, socket.inode), (LISTENING_STATE, 4711));
        let six = parse_address("0000000000000000FFFF00000100007F:0050");
        assert_eq!(six, Some("127.0.0.1:80".parse().unwrap()));
        let six = parse_address("00000000000000000000000001000000:0050");
        assert_eq!(six, Some("[::1]:80".parse().unwrap()));
        for bad in ["", "0100007F", "xx:1", "0100007F:1F901"] {
            assert_eq!(parse_address(bad), None, "{bad}");
        }
        assert_eq!(Socket::parse("  sl  local_address rem_address"), None);
    }

    #[test]
    fn the_server_of_a_local_socket_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server");
        let server = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (_accepted, _) = server.accept().unwrap();
        let client = TcpListener::from(OwnedFd::from(client));
        let id = std::process::id().cast_signed();
        assert_eq!(local(id, &client).len(), 2);
        assert_eq!(maker(&client), Some(id));
    }

    #[test]
    fn the_other_end_of_a_connection_is_found() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let (own, peer) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
        let id = std::process::id().cast_signed();
        // The server has not accepted the connection yet, so its listening socket is found.
        let listening = tcp(id, own, peer).unwrap();
        assert_eq!(listening.len(), 1);
        let (_accepted, _) = server.accept().unwrap();
        let other = tcp(id, own, peer).unwrap();
        assert_eq!(other.len(), 1);
        assert_ne!(other, listening);
        assert_eq!(tcp(id, own, "192.0.2.1:80".parse().unwrap()), None);
    }
}
