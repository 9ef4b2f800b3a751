//! What a design has to say of itself so that the lab can run it.

use mortmain::sys::{Answer, ChildKernel, ChildPlan, Errno, PathBytes};

use crate::system::System;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call failed.
    #[error("cannot {operation} {path}: {errno}")]
    System {
        /// What was to be done.
        operation: &'static str,
        /// Where.
        path: PathBytes,
        /// The number that the call failed with.
        errno: Errno,
    },
    /// Every attempt at a directory lost it to somebody else.
    #[error("cannot create a directory in {path}: others took each of {attempts} attempts")]
    Contended {
        /// Where.
        path: PathBytes,
        /// How many attempts there were.
        attempts: u32,
    },
    /// The implementation's own.
    #[error(transparent)]
    Mortmain(#[from] mortmain::Error),
}

impl Error {
    /// What makes an error of an operation from the number of a call.
    pub(crate) fn of(operation: &'static str, path: &PathBytes) -> impl Fn(Errno) -> Error {
        move |errno| Error::System { operation, path: path.clone(), errno }
    }
}

/// A design: how a directory is made, how a command is started in it, and how somebody else decides
/// later that nobody needs it any more.
///
/// Everything but [`Design::sweep`] is done by the owner of the directory. A design has no state of
/// its own: what an owner has to remember is in [`Design::Dir`].
pub trait Design: 'static {
    /// A directory, as its owner holds it.
    type Dir<K: System>;
    /// A command that was started, as its owner knows it.
    type Started;

    /// Makes a directory for the calling process below `root`.
    ///
    /// # Errors
    /// When it could not be made; nothing of it may be needed then.
    fn create<K: System>(kernel: &K, root: &PathBytes) -> Result<Self::Dir<K>, Error>;

    /// The path at which the directory has to stay while somebody may use it.
    fn path<K: System>(dir: &Self::Dir<K>) -> PathBytes;

    /// The path of what its users are given: the same, or below it.
    fn files<K: System>(dir: &Self::Dir<K>) -> PathBytes {
        Self::path(dir)
    }

    /// Starts a command in the directory.
    ///
    /// # Errors
    /// When no command runs.
    fn spawn<K: System>(
        dir: &mut Self::Dir<K>,
        program: &mut K::Program,
    ) -> Result<Self::Started, Error>;

    /// What the child does between fork and exec, with async-signal-safe calls only.
    ///
    /// # Errors
    /// The number of the call that failed; the child then ends without running anything.
    fn child<C: ChildKernel>(child: &C, plan: &ChildPlan) -> Answer<()>;

    /// Waits until a command has ended, and does what the design does then.
    ///
    /// # Errors
    /// The design's own.
    fn wait<K: System>(dir: &mut Self::Dir<K>, started: &Self::Started) -> Result<(), Error>;

    /// Ends a command, and does what the design does then.
    ///
    /// # Errors
    /// The design's own.
    fn end<K: System>(dir: &mut Self::Dir<K>, started: &Self::Started) -> Result<(), Error>;

    /// The owner gives the directory up: it is removed, or left to the sweeps.
    ///
    /// # Errors
    /// When it could be neither; what is left of it is then the sweeps' as well.
    fn close<K: System>(dir: Self::Dir<K>) -> Result<(), Error>;

    /// Looks at every directory of the design below `root` and removes what nobody needs.
    ///
    /// # Errors
    /// When the sweep could not begin. What it could not do on the way is no error of its own.
    fn sweep<K: System>(kernel: &K, root: &PathBytes) -> Result<(), Error>;
}
