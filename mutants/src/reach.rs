//! Hears what the processes of a test come by.
//!
//! A test is run with the order to record; every process of it sends each mutant that it comes by,
//! once, to a socket of this program. The socket is in the abstract name space, which no mount and
//! no permission of a file keeps from them.
//!
//! Invariant: what was sent before a test's processes ended is heard before [`Listener::take`]
//! returns.

use std::collections::BTreeSet;
use std::io;
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::runtime::Message;

/// How long the mark may take that is sent by this very process.
const LIMIT: Duration = Duration::from_secs(60);

/// How many names are tried.
const NAMES_MAX: u32 = 100;

/// What was heard from the processes of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) reached: BTreeSet<u32>,
    /// Most rounds of loops in one process, to the power of two below.
    pub(crate) rounds: u64,
    /// A process ended itself, since its loops went round too often.
    pub(crate) guarded: bool,
}

#[derive(Debug, Default)]
struct Shared {
    heard: Heard,
    /// The last mark that was heard.
    mark: u64,
    /// Nothing is heard any more.
    deaf: bool,
}

#[derive(Debug)]
pub(crate) struct Listener {
    name: String,
    socket: UnixDatagram,
    shared: Arc<(Mutex<Shared>, Condvar)>,
    marks: u64,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub(crate) fn new() -> io::Result<Listener> {
        let (name, socket) = bind()?;
        let shared = Arc::<(Mutex<Shared>, Condvar)>::default();
        let (hearing, to) = (socket.try_clone()?, Arc::clone(&shared));
        let thread = thread::spawn(move || {
            hear(&hearing, &to);
            let (shared, changed) = &*to;
            lock(shared).deaf = true;
            changed.notify_all();
        });
        Ok(Listener { name, socket, shared, marks: 0, thread: Some(thread) })
    }

    /// The name that processes send to.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What was heard since the last time. To be called when all who could send have ended.
    ///
    /// # Errors
    ///
    /// When nothing can be heard any more, or the mark that ends it does not come.
    pub(crate) fn take(&mut self) -> io::Result<Heard> {
        self.marks += 1;
        let mut mark = vec![b'm'];
        mark.extend(self.marks.to_le_bytes());
        let address = SocketAddr::from_abstract_name(&self.name)?;
        UnixDatagram::unbound()?.send_to_addr(&mark, &address)?;
        let (shared, changed) = &*self.shared;
        let waits = |shared: &mut Shared| shared.mark < self.marks && !shared.deaf;
        let waited = changed.wait_timeout_while(lock(shared), LIMIT, waits);
        let (mut shared, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if shared.mark < self.marks {
            return Err(io::Error::other("the listener does not hear its own mark"));
        }
        Ok(std::mem::take(&mut shared.heard))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It hears nothing any more, and ends.
        let _ = self.socket.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn bind() -> io::Result<(String, UnixDatagram)> {
    let mut tried = 0;
    loop {
        let name = format!("mortmain-mutants-{}-{tried}", std::process::id());
        match UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?) {
            Ok(socket) => return Ok((name, socket)),
            // Of a program in another pid namespace, say.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tried < NAMES_MAX => {
                tried += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hear(socket: &UnixDatagram, to: &(Mutex<Shared>, Condvar)) {
    let mut buffer = [0; 16];
    loop {
        let length = match socket.recv(&mut buffer) {
            // Shut down; a message has a length.
            Ok(0) => return,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let (shared, changed) = to;
        let mut shared = lock(shared);
        match (&buffer[..length], Message::parse(&buffer[..length])) {
            (_, Some(Message::Reached(number))) => {
                shared.heard.reached.insert(number);
            }
            (_, Some(Message::Rounds(rounds))) => {
                shared.heard.rounds = shared.heard.rounds.max(rounds);
            }
            (_, Some(Message::Guarded)) => shared.heard.guarded = true,
            ([b'm', mark @ ..], None) => {
                shared.mark = mark.try_into().map_or(shared.mark, u64::from_le_bytes);
                changed.notify_all();
            }
            // Of a stranger.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_was_sent_is_heard_and_only_once() {
        let mut listener = Listener::new().unwrap();
        let address = SocketAddr::from_abstract_name(listener.name()).unwrap();
        let send = |kind: u8, number: u64| {
            let mut message = vec![kind];
            message.extend(number.to_le_bytes());
            let sent = UnixDatagram::unbound().unwrap().send_to_addr(&message, &address);
            assert_eq!(sent.unwrap(), 9);
        };
        for number in 0..1000 {
            send(b'r', number % 500);
        }
        send(b'l', 8);
        send(b'l', 4);
        let heard = listener.take().unwrap();
        assert_eq!((heard.reached.len(), heard.rounds, heard.guarded), (500, 8, false));
        send(b'g', 1);
        send(b'?', 1);
        let expected = Heard { guarded: true, ..Heard::default() };
        assert_eq!(listener.take().unwrap(), expected);
        assert_eq!(listener.take().unwrap(), Heard::default());
    }

    #[test]
    fn what_cannot_be_heard_is_an_error_and_not_waited_for() {
        let heard = Listener::new().unwrap();
        heard.socket.shutdown(Shutdown::Read).unwrap();
        let (shared, changed) = &*heard.shared;
        drop(changed.wait_while(lock(shared), |shared| !shared.deaf).unwrap());

        let (name, socket) = bind().unwrap();
        let shared = Arc::<(Mutex<Shared>, Condvar)>::default();
        lock(&shared.0).deaf = true;
        // What is sent is taken by the kernel, and by nobody else.
        let mut deaf = Listener { name, socket, shared, marks: 0, thread: None };
        assert_eq!(deaf.take().unwrap_err().kind(), io::ErrorKind::Other);
    }

    #[test]
    fn two_listeners_have_two_names() {
        let (one, other) = (Listener::new().unwrap(), Listener::new().unwrap());
        assert_ne!(one.name(), other.name());
    }
}
