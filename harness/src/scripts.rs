//! Commands that run in a claim, as shell scripts.
//!
//! Each says a line when it has become what it is meant to be, and runs until it is killed. They use
//! no program whose start would come after that line: a process that still changes its name is
//! another one to whoever looks at it. They wait by opening a FIFO that nobody writes to, in the
//! working directory, which therefore is a directory of the claim's.

/// A shell alone.
pub const RUNS_ON: &str = "mkfifo never; echo runs; read x <never";

/// A shell that ends at once and leaves a daemon, which has a session of its own and has inherited
/// every descriptor. Says the daemon's pid.
pub const LEAVES_DAEMON: &str = "mkfifo never; setsid sh -c 'echo $$; read x <never' &";

/// A shell that ends at once and leaves a member of its group, which has only the standard streams,
/// as a child of Python or Node has. Says the member's pid.
// The plain shell knows no number of a descriptor with more than one digit.
pub const LEAVES_MEMBER: &str = "mkfifo never; bash -c 'exec 255>&-; echo $$; read x <never' &";

/// A shell with two children in its group, all without the lock. Says the shell's pid.
pub const RUNS_IN_THREE: &str = "exec bash -c 'exec 255>&-; mkfifo never; \
    read x <never & read x <never & echo $$; read x <never'";
