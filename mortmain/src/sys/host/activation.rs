//! Descriptors that a service manager has passed, asked after and taken over.

use std::os::fd::OwnedFd;

use rustix::io::FdFlags;

pub(crate) use super::passed::{COUNT_MAX, FIRST, number};
use super::{IntoAnswer as _, raw};
use crate::sys::{Answer, Errno, Handle};

/// Why a descriptor is none that was passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotOurs {
    /// Nothing is open there.
    Closed,
    /// It is a file, a pipe or the like.
    NoSocket,
    /// It is a socket that nobody can connect to.
    Deaf,
}

/// Whether a descriptor is a socket that listens.
pub(crate) fn listens(number: i32) -> Result<(), NotOurs> {
    let fd = raw::borrow(Handle(number)).or(Err(NotOurs::Closed))?;
    match rustix::net::sockopt::socket_acceptconn(fd).answer() {
        Ok(true) => Ok(()),
        Ok(false) => Err(NotOurs::Deaf),
        Err(Errno::EBADF) => Err(NotOurs::Closed),
        Err(_) => Err(NotOurs::NoSocket),
    }
}

/// Sees to it that no command inherits a descriptor.
pub(crate) fn keep_from_commands(number: i32) -> Answer<()> {
    let fd = raw::borrow(Handle(number))?;
    // CHECK(a5-close-on-exec): a command would keep the address after the program has ended.
    rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC).answer()?;
    Ok(())
}

/// Takes a descriptor over.
pub(crate) fn take(number: i32) -> Answer<OwnedFd> {
    raw::take_over(Handle(number))
}
