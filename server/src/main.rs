//! A server of the Model Context Protocol (MCP) on the library: it sweeps at its start, works in a
//! claim, and leaves nothing behind but what somebody still uses.
//!
//! It is what a product would be, and small: the protocol is the SDK's, everything that has to be safe
//! is the library's. What is left to it is to ask for both in the right order.

mod capture;
mod claims;
mod failure;
mod helper;
mod input;
mod notes;
mod options;
mod serve;
mod shell;
mod tools;
mod workplace;

use std::env;
use std::fs;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use clap::Parser;
use mortmain::Namespace;

use crate::failure::{Failure, note};
use crate::notes::Notes;
use crate::options::Options;
use crate::serve::Shared;
use crate::workplace::Workplace;

fn main() -> ExitCode {
    if let Some(helped) = helper::run(env::args_os()) {
        return helped;
    }
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.told(),
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let passed = options.listen_fds.then(serve::passed).transpose()?;
    let namespace = match &options.root {
        Some(root) => Namespace::at(root, &options.prefix),
        None => Namespace::new(&options.prefix),
    };
    let namespace = namespace.map_err(Failure::given)?;
    let (made, own) = channel::<String>();
    // CHECK(b2-at-start): what killed servers left would be removed by nobody.
    sweep(&namespace, own);
    let workplace = Arc::new(Workplace::make(&namespace, options.notes.as_deref())?);
    // Nobody hears it where the thread that tells could not be made.
    let _ = made.send(workplace.random().into());
    let served = serve(options, namespace, &workplace, passed);
    workplace.close();
    served
}

/// Serves to the end of the clients.
fn serve(
    options: &Options,
    namespace: Namespace,
    workplace: &Arc<Workplace>,
    passed: Option<Vec<std::os::unix::net::UnixListener>>,
) -> Result<(), Failure> {
    let notes = workplace.notes();
    if fs::metadata(notes).is_ok_and(|found| !found.is_file()) {
        return Err(Failure::given(format_args!(
            "the notes cannot be kept in {}, which is no file; give --notes a file, or a path where \
             nothing is yet",
            notes.display()
        )));
    }
    let shared = Shared {
        workplace: Arc::clone(workplace),
        namespace,
        notes: Notes::at(notes).map_err(Failure::given)?,
        leave_commands: options.leave_commands,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::system)?;
    let served = runtime.block_on(async {
        match passed {
            Some(passed) => serve::sockets(shared, passed).await,
            None => serve::standard(shared).await,
        }
    });
    // A thread that waits for input, or for a lock, is not waited for.
    runtime.shutdown_background();
    served
}

/// Starts to remove what killed servers left, and tells what came of it when that is known. Of the
/// server's own claim, which it may have met, it tells nothing: `own` says what is in each of its names.
fn sweep(namespace: &Namespace, own: Receiver<String>) {
    let sweep = namespace.sweep_in_background();
    let tell = move || match sweep.join() {
        Ok(mut report) => {
            if let Ok(own) = own.recv() {
                let is_own =
                    |name: &[u8]| name.windows(own.len()).any(|part| part == own.as_bytes());
                report.entries.retain(|entry| !is_own(entry.name.bytes()));
            }
            for line in report.to_string().lines() {
                note(line);
            }
            note(format_args!("swept {}: {} removed", report.root, report.removed()));
        }
        Err(error) => note(error),
    };
    if let Err(error) = thread::Builder::new().name("tells".into()).spawn(tell) {
        note(format_args!("what is swept is not told: {error}"));
    }
}
