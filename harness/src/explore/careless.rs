//! Kernels that let go of a rule about a hostile root: they are put around the world's own, so that the
//! implementation above them follows what it is told.

use std::hash::Hash;

use mortmain::sys::{Answer, Call, ChildPlan, Errno, Kernel, Kind, Pid, Reply};
use mortmain_subjects::{Beyond, System as _};

use super::Without;
use crate::simulated::WorldKernel;
use crate::world::request::Command;

/// Opens as `open` does when nobody asks for anything else.
#[derive(Clone)]
pub(super) struct Careless {
    inner: WorldKernel,
    without: Without,
}

impl Careless {
    /// h1 off: what is opened is neither looked at before nor opened with any care.
    pub(super) fn opens(inner: &WorldKernel) -> Careless {
        Careless { inner: inner.clone(), without: Without::H1 }
    }

    /// h2 off: a mount is entered.
    pub(super) fn crosses(inner: &WorldKernel) -> Careless {
        Careless { inner: inner.clone(), without: Without::H2 }
    }

    /// h3 off: a link to a directory is a directory.
    pub(super) fn follows(inner: &WorldKernel) -> Careless {
        Careless { inner: inner.clone(), without: Without::H3 }
    }
}

impl Kernel for Careless {
    type Program = Command;

    fn call(&self, call: Call) -> Answer<Reply> {
        match call {
            Call::OpenDir { dir, name } if self.without == Without::H2 => {
                match self.inner.call(Call::OpenDir { dir, name: name.clone() }) {
                    Err(Errno::EXDEV) => self.inner.beyond(Beyond::OpenPlain { dir, name }),
                    answer => answer,
                }
            }
            Call::OpenDir { dir, name } if self.without == Without::H3 => {
                match self.inner.call(Call::Readlink { dir, name: name.clone() }) {
                    Ok(_) => self.inner.beyond(Beyond::OpenPlain { dir, name }),
                    Err(_) => self.inner.call(Call::OpenDir { dir, name }),
                }
            }
            Call::OpenDir { dir, name } | Call::OpenFile { dir, name }
                if self.without == Without::H1 =>
            {
                match self.inner.call(Call::StatAt { dir, name: name.clone() }) {
                    Err(Errno::EXDEV) => Err(Errno::EXDEV),
                    _ => self.inner.beyond(Beyond::OpenPlain { dir, name }),
                }
            }
            Call::ReadDir { .. } if self.without == Without::H3 => match self.inner.call(call)? {
                Reply::Entries(mut entries) => {
                    for entry in entries.iter_mut().filter(|entry| entry.kind == Kind::Link) {
                        entry.kind = Kind::Dir;
                    }
                    Ok(Reply::Entries(entries))
                }
                other => Ok(other),
            },
            call => self.inner.call(call),
        }
    }

    fn spawn(&self, program: &mut Command, plan: &ChildPlan) -> Answer<Pid> {
        self.inner.spawn(program, plan)
    }

    fn aside<T: Hash>(&self, part: impl FnOnce(&Self) -> T) -> T {
        self.inner.aside(|_| part(self))
    }
}
