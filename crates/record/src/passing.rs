//! Passes bytes and descriptors between two processes, over a socket (unix(7)).

use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

/// The largest number of descriptors in one message over a socket: the kernel's SCM_MAX_FD.
const MOST_DESCRIPTORS: usize = 253;

/// The bytes of memory that the descriptors of a message need. The memory is not on the heap, because
/// COMMAND's process sends a message between fork and exec.
const ROOM: usize = rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS));

/// Sends at least one byte, together with descriptors, to the process at the other end of the socket.
///
/// # Errors
/// The errors of the kernel; there are too many descriptors; the kernel took only some of the bytes.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<()> {
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut control = SendAncillaryBuffer::new(&mut room);
    let any = !descriptors.is_empty();
    if any && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(ErrorKind::InvalidInput.into());
    }
    let parts = [IoSlice::new(bytes)];
    if sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL)? == bytes.len() {
        Ok(())
    } else {
        Err(ErrorKind::WriteZero.into())
    }
}

/// Receives as many bytes as `bytes` has, and returns the descriptors that came with the first byte.
///
/// # Errors
/// The errors of the kernel; the other end sent fewer bytes, or more descriptors than fit.
pub fn receive(socket: impl AsFd, bytes: &mut [u8]) -> Result<Vec<OwnedFd>> {
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
    let got = retry_on_intr(|| {
        let mut parts = [IoSliceMut::new(bytes)];
        recvmsg(&socket, &mut parts, &mut control, flags)
    })?;
    if got.bytes < bytes.len() || got.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Error::from(ErrorKind::UnexpectedEof));
    }
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    Ok(descriptors)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::{receive, send, MOST_DESCRIPTORS};

    #[test]
    fn bytes_and_descriptors_arrive() {
        let (one, other) = UnixStream::pair().unwrap();
        let (passed, reader) = UnixStream::pair().unwrap();
        let (fd, many) = (passed.as_fd(), passed.as_fd());
        send(&one, b"three", &[fd, fd, fd]).unwrap();
        send(&one, b"none", &[]).unwrap();
        let mut bytes = [0; 5];
        let mut descriptors = receive(&other, &mut bytes).unwrap();
        assert_eq!((&bytes, descriptors.len()), (b"three", 3));
        let mut bytes = [0; 4];
        assert!(receive(&other, &mut bytes).unwrap().is_empty());
        assert!(send(&one, b"x", &[many; MOST_DESCRIPTORS + 1]).is_err());
        drop(passed);
        send(descriptors.pop().unwrap(), b"it", &[]).unwrap();
        let mut bytes = [0; 2];
        receive(&reader, &mut bytes).unwrap();
        assert_eq!(&bytes, b"it");
    }

    #[test]
    fn less_than_a_message_is_an_error() {
        let (one, other) = UnixStream::pair().unwrap();
        send(&one, b"ab", &[]).unwrap();
        drop(one);
        assert!(receive(&other, &mut [0; 3]).is_err());
        assert!(receive(&other, &mut [0; 1]).is_err());
    }
}
