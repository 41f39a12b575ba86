//! Bytes and descriptors between two processes, over a socket (unix(7)).

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;

/// The largest number of descriptors in a message : the kernel's SCM_MAX_FD, less
/// one for the alignment of [`Control`].
const MOST: usize = 252;

/// A pair of connected sockets that close on exec.
pub fn pair() -> Result<(OwnedFd, OwnedFd)> {
    let mut ends: [RawFd; 2] = [-1; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: `ends` has room for two descriptors, which the kernel opens.
    unsafe {
        Errno::result(libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()))?;
        let [one, other] = ends;
        Ok((OwnedFd::from_raw_fd(one), OwnedFd::from_raw_fd(other)))
    }
}

/// Room for a header and the descriptors, aligned as a `cmsghdr`. It is not on the heap, as
/// COMMAND's process sends between fork and exec.
#[repr(C, align(8))]
struct Control([u8; 16 + MOST * size_of::<RawFd>()]);

/// A message of these bytes and, in `control`, room for descriptors.
fn with_message<T>(
    (bytes, len): (*mut u8, usize),
    control: &mut Control,
    call: impl FnOnce(&mut libc::msghdr) -> T,
) -> T {
    let mut part = libc::iovec {
        iov_base: bytes.cast(),
        iov_len: len,
    };
    // SAFETY: all zeros are a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    call(&mut message)
}

/// Sends bytes, at least one, with descriptors.
///
/// # Errors
/// The kernel's; too many descriptors; the socket's buffer is full.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<()> {
    if descriptors.len() > MOST {
        return Err(ErrorKind::InvalidInput.into());
    }
    let mut control = Control([0; size_of::<Control>()]);
    let size = size_of_val(descriptors) as u32;
    // sendmsg(2) only reads the bytes.
    let place = (bytes.as_ptr().cast_mut(), bytes.len());
    let sent = with_message(place, &mut control, |message| {
        if descriptors.is_empty() {
            message.msg_controllen = 0;
        }
        // SAFETY: `control` has room for a header and MOST descriptors; a borrowed descriptor
        // is represented as its number.
        unsafe {
            if let Some(header) = libc::CMSG_FIRSTHDR(message).as_mut() {
                header.cmsg_level = libc::SOL_SOCKET;
                header.cmsg_type = libc::SCM_RIGHTS;
                header.cmsg_len = libc::CMSG_LEN(size) as _;
                let data = libc::CMSG_DATA(header);
                data.copy_from(descriptors.as_ptr().cast(), size as usize);
                message.msg_controllen = libc::CMSG_SPACE(size) as _;
            }
            libc::sendmsg(socket.as_fd().as_raw_fd(), message, libc::MSG_NOSIGNAL)
        }
    });
    if Errno::result(sent)?.unsigned_abs() == bytes.len() {
        Ok(())
    } else {
        Err(ErrorKind::WriteZero.into())
    }
}

/// Fills `bytes`; the descriptors that came with the first of them.
///
/// # Errors
/// The kernel's; the other end sent less, or more descriptors than fit.
pub fn receive(socket: impl AsFd, bytes: &mut [u8]) -> Result<Vec<OwnedFd>> {
    let fd = socket.as_fd().as_raw_fd();
    let mut control = Control([0; size_of::<Control>()]);
    let place = (bytes.as_mut_ptr(), bytes.len());
    let (got, descriptors, cut) = with_message(place, &mut control, |message| {
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_WAITALL;
        let got = loop {
            // SAFETY: `message` describes valid places for the results.
            let got = unsafe { libc::recvmsg(fd, message, flags) };
            match Errno::result(got) {
                Err(Errno::EINTR) => {}
                result => break result,
            }
        };
        let got = got.map_err(Error::from)?;
        let cut = message.msg_flags & libc::MSG_CTRUNC != 0;
        Ok::<_, Error>((got.unsigned_abs(), taken(message), cut))
    })?;
    if got < bytes.len() || cut {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(descriptors)
}

/// The descriptors of a received message.
fn taken(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut descriptors = Vec::new();
    // SAFETY: the kernel has filled in the headers; the descriptors in them are new.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = next.as_ref() {
            if header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_RIGHTS {
                let len: usize = header.cmsg_len as _;
                let bytes = len.saturating_sub(libc::CMSG_LEN(0) as usize);
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for at in 0..bytes / size_of::<RawFd>() {
                    descriptors.push(OwnedFd::from_raw_fd(data.add(at).read_unaligned()));
                }
            }
            next = libc::CMSG_NXTHDR(message, header);
        }
    }
    descriptors
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::{pair, receive, send, MOST};

    #[test]
    fn bytes_and_descriptors_arrive() {
        let (one, other) = pair().unwrap();
        let (passed, reader) = pair().unwrap();
        let (fd, many) = (passed.as_fd(), passed.as_fd());
        send(&one, b"three", &[fd, fd, fd]).unwrap();
        send(&one, b"none", &[]).unwrap();
        let mut bytes = [0; 5];
        let mut descriptors = receive(&other, &mut bytes).unwrap();
        assert_eq!((&bytes, descriptors.len()), (b"three", 3));
        let mut bytes = [0; 4];
        assert!(receive(&other, &mut bytes).unwrap().is_empty());
        assert!(send(&one, b"x", &[many; MOST + 1]).is_err());
        drop(passed);
        send(descriptors.pop().unwrap(), b"it", &[]).unwrap();
        let mut bytes = [0; 2];
        receive(&reader, &mut bytes).unwrap();
        assert_eq!(&bytes, b"it");
    }

    #[test]
    fn less_than_a_message_is_an_error() {
        let (one, other) = pair().unwrap();
        send(&one, b"ab", &[]).unwrap();
        drop(one);
        assert!(receive(&other, &mut [0; 3]).is_err());
        assert!(receive(&other, &mut [0; 1]).is_err());
    }
}
