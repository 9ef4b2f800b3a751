//! The wish of the user, or of CI, to stop.
//!
//! The first SIGINT, SIGTERM or SIGHUP asks: what runs is ended and the results so
//! far are printed. The second has its usual effect and kills this program, and with
//! it everything that it has started.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// Whether the run is to stop, as a value that can be polled.
#[derive(Debug)]
pub(crate) struct Interrupt {
    seen: Arc<AtomicBool>,
    /// Readable from the first signal on.
    wake: UnixStream,
}

impl Interrupt {
    /// Begins to watch for the signals, for the rest of the process's life.
    pub(crate) fn watch() -> io::Result<Interrupt> {
        let seen = Arc::new(AtomicBool::new(false));
        let (wake, signal) = UnixStream::pair()?;
        for number in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: a signal that finds the flag up has its usual effect.
            flag::register_conditional_default(number, Arc::clone(&seen))?;
            flag::register(number, Arc::clone(&seen))?;
            low_level::pipe::register(number, signal.try_clone()?)?;
        }
        Ok(Interrupt { seen, wake })
    }

    pub(crate) fn seen(&self) -> bool {
        self.seen.load(Ordering::SeqCst)
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
