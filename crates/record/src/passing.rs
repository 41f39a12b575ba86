//! A descriptor on its way from COMMAND's process to `tr`, over a socket (unix(7)).

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;

/// A pair of connected sockets that close on exec.
pub fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let mut ends: [RawFd; 2] = [-1; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: `ends` has room for two descriptors, which the kernel opens.
    unsafe {
        Errno::result(libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()))?;
        let [one, other] = ends;
        Ok((OwnedFd::from_raw_fd(one), OwnedFd::from_raw_fd(other)))
    }
}

/// Room for one descriptor, aligned as a `cmsghdr`.
#[repr(C, align(8))]
struct Control([u8; 24]);

/// A message of one byte and, in `control`, room for a descriptor.
fn with_message<T>(
    byte: &mut u8,
    control: &mut Control,
    call: impl FnOnce(&mut libc::msghdr) -> T,
) -> T {
    let mut part = libc::iovec {
        iov_base: std::ptr::from_mut(byte).cast(),
        iov_len: 1,
    };
    // SAFETY: all zeros are a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    call(&mut message)
}

/// Sends a descriptor.
pub fn send(socket: impl AsFd, descriptor: &OwnedFd) -> Result<(), Errno> {
    let (mut byte, mut control) = (b'd', Control([0; 24]));
    let size = size_of::<RawFd>() as u32;
    with_message(&mut byte, &mut control, |message| {
        // SAFETY: `control` has room for a header and one descriptor (CMSG_SPACE is 24).
        let sent = unsafe {
            let header = libc::CMSG_FIRSTHDR(message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size) as _;
            let data = libc::CMSG_DATA(header).cast::<RawFd>();
            data.write_unaligned(descriptor.as_raw_fd());
            libc::sendmsg(socket.as_fd().as_raw_fd(), message, libc::MSG_NOSIGNAL)
        };
        Errno::result(sent).map(drop)
    })
}

/// Receives a descriptor; `None` if the other end has sent none.
pub fn receive(socket: impl AsFd) -> Option<OwnedFd> {
    let (mut byte, mut control) = (0, Control([0; 24]));
    with_message(&mut byte, &mut control, |message| {
        let fd = socket.as_fd().as_raw_fd();
        loop {
            // SAFETY: `message` describes valid places for the results.
            let got = unsafe { libc::recvmsg(fd, message, libc::MSG_CMSG_CLOEXEC) };
            match Errno::result(got) {
                Ok(1) => break,
                Err(Errno::EINTR) => {}
                _ => return None,
            }
        }
        // SAFETY: the kernel has filled in the headers; a descriptor in them is new.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(message);
            if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
                return None;
            }
            let data = libc::CMSG_DATA(header).cast::<RawFd>();
            Some(OwnedFd::from_raw_fd(data.read_unaligned()))
        }
    })
}
