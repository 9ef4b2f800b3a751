//! What the server is told by its arguments, and what holds where it is told nothing.

use std::path::PathBuf;

use clap::Parser;

const EXAMPLE: &str = r#"In the configuration of a client:
  { "mcpServers": { "shell": { "command": "mortmain-server", "args": ["--notes", "/srv/notes.json"] } } }

Exit codes:
  0   its input ended, or it was told to end by SIGTERM or SIGINT
  2   wrong usage: a root that is no directory, a prefix that is none, no sockets that were passed
  70  the server failed: a system call went wrong, or a disk is full"#;

/// Runs commands for a client of the Model Context Protocol, in a directory that is reclaimed safely.
///
/// It speaks the protocol over its standard input and output, and offers the tools `shell`,
/// `list_claims` and `notes`. Commands run in a claim: a directory that is removed when the server
/// ends, and where the server is killed, at the next start of one, but never before the last of its
/// commands has ended.
#[derive(Parser, Clone, Debug)]
#[command(name = "mortmain-server", version, after_help = EXAMPLE)]
pub(crate) struct Options {
    /// The directory that its claim lies in, which must exist [default: $TMPDIR, or /tmp]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// What its claim is called by: the name is PREFIX-xxxxxxxxxxxx
    #[arg(long, value_name = "PREFIX", default_value = "mortmain-server")]
    pub(crate) prefix: String,
    /// The file that keeps the notes; its directory must exist [default: one in the claim, which
    /// goes with it]
    #[arg(long, value_name = "FILE")]
    pub(crate) notes: Option<PathBuf>,
    /// Leave the commands running that run when the client goes or the server ends [default: end
    /// them, each with its process group]
    #[arg(long)]
    pub(crate) leave_commands: bool,
    /// Serve the Unix sockets that a service manager has passed (LISTEN_PID, LISTEN_FDS), a client a
    /// connection, until it is told to end [default: one client, at standard input and output]
    #[arg(long)]
    pub(crate) listen_fds: bool,
}
