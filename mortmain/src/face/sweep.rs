//! Sweeps as users of the library ask for them: at once, with a budget, or in
//! the background (b2).
//!
//! The only part of the crate that starts a thread for itself or looks at a
//! clock. A background sweep is a thread that nobody has to wait for: it dies
//! with its process, at whatever step, and the next sweep goes on.

use std::prelude::rust_2024::*;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::{Namespace, holding};
use crate::error::{Error, ErrorKind};
use crate::evidence::{Ended, Evidence, Finding};
use crate::life::Scan;
use crate::probe::{Candidate, Prober, Probes};
use crate::protocol::{self, Root};
use crate::remove::{Remover, Removes};
use crate::report::Report;
use crate::sys::{Errno, Host, Kernel, PathBytes};

/// What a sweep is to do, and for how long.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SweepOptions {
    /// Give verdicts and remove nothing. The locks of dead claims are still
    /// taken for a moment.
    pub dry_run: bool,
    /// How long it may take, about: it stops after the claim that it is at when
    /// this is over, and has looked at one in any case. What it did not come to
    /// stands in [`Report::unseen`]; since each sweep begins at a different
    /// place, however short ones get ahead.
    pub budget: Option<Duration>,
}

impl Namespace {
    /// Judges every claim here and removes what may go; see the report for
    /// what became of each. A sweep does not fail and does not wait.
    ///
    /// # Crash behaviour
    /// Killed at any system call, it leaves claims whole, or tombstones that
    /// the next sweep finishes.
    pub fn sweep(&self) -> Report {
        self.sweep_with(&SweepOptions::default(), &mut Probes, &mut Removes)
    }

    /// As [`Namespace::sweep`], but removes nothing. The locks of dead claims
    /// are still taken for a moment.
    pub fn dry_run(&self) -> Report {
        let options = SweepOptions { dry_run: true, ..SweepOptions::default() };
        self.sweep_with(&options, &mut Probes, &mut Removes)
    }

    /// As [`Namespace::sweep`], with options, and with a prober and a remover
    /// of the caller's own in the place of the real ones ([`Probes`],
    /// [`Removes`]): for tests of what the caller does when a probe cannot tell
    /// or a removal fails.
    pub fn sweep_with<P: Prober<Host>, R: Remover<Host>>(
        &self,
        options: &SweepOptions,
        prober: &mut P,
        remover: &mut R,
    ) -> Report {
        sweep(&self.root, options, prober, remover)
    }

    /// Starts a sweep in a thread of its own and returns at once: not even the
    /// listing of the root delays the caller. Nothing that goes wrong in it
    /// reaches the program, and nobody has to wait for it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let scratch = mortmain::sandbox!("doc-sweep")?;
    /// # let root = scratch.path();
    /// use mortmain::Namespace;
    /// use std::time::Duration;
    ///
    /// let namespace = Namespace::at(root, "my-tool")?;
    /// let sweep = namespace.sweep_in_background();
    /// // … the program does its work, and at its end, if it has the time:
    /// if let Ok(Some(report)) = sweep.wait_at_most(Duration::from_millis(200)) {
    ///     print!("{report}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Crash behaviour
    /// As [`Namespace::sweep`]; it ends with its process.
    pub fn sweep_in_background(&self) -> BackgroundSweep {
        self.sweep_in_background_with(SweepOptions::default(), Probes, Removes)
    }

    /// As [`Namespace::sweep_in_background`], with what
    /// [`Namespace::sweep_with`] takes. The budget counts from the call.
    ///
    /// # Crash behaviour
    /// As [`Namespace::sweep_in_background`].
    pub fn sweep_in_background_with<P, R>(
        &self,
        options: SweepOptions,
        prober: P,
        remover: R,
    ) -> BackgroundSweep
    where
        P: Prober<Host> + Send + 'static,
        R: Remover<Host> + Send + 'static,
    {
        in_background(self.root.clone(), options, prober, remover)
    }
}

/// A sweep that goes on beside the program. Dropping it leaves the sweep to
/// itself: it neither waits nor fails.
#[derive(Debug)]
#[must_use = "dropping it is fine, and says that nobody wants to know what came of the sweep"]
pub struct BackgroundSweep {
    /// The error is that of a thread that could not be started.
    report: Result<Receiver<Report>, Errno>,
    path: PathBytes,
}

impl BackgroundSweep {
    /// Waits for its end.
    ///
    /// # Errors
    /// * [`ErrorKind::System`]: no thread could be started for it.
    /// * [`ErrorKind::Panicked`]: it panicked, which a prober or remover of the
    ///   caller's own may do.
    pub fn join(self) -> Result<Report, Error> {
        self.receiver()?.recv().map_err(|_gone| self.panicked())
    }

    /// Waits for its end, but not for longer than this; `None` when it goes on.
    /// It then is left to itself.
    ///
    /// # Errors
    /// As [`BackgroundSweep::join`].
    pub fn wait_at_most(self, limit: Duration) -> Result<Option<Report>, Error> {
        match self.receiver()?.recv_timeout(limit) {
            Ok(report) => Ok(Some(report)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.panicked()),
        }
    }

    fn receiver(&self) -> Result<&Receiver<Report>, Error> {
        let failed = |errno: &Errno| Error::system(OPERATION, &self.path, *errno);
        self.report.as_ref().map_err(failed)
    }

    fn panicked(&self) -> Error {
        let text = "its thread panicked".into();
        Error::because(ErrorKind::Panicked, OPERATION, &self.path, text)
    }
}

const OPERATION: &str = "sweep in the background";

fn in_background<K, P, R>(
    root: Root<K>,
    options: SweepOptions,
    mut prober: P,
    mut remover: R,
) -> BackgroundSweep
where
    K: Kernel + Send + Sync + 'static,
    P: Prober<K> + Send + 'static,
    R: Remover<K> + Send + 'static,
{
    let path = root.path().clone();
    let (tell, report) = channel();
    let enough = over(options.budget);
    let work = move || {
        let report = sweep_until(&root, options.dry_run, &mut prober, &mut remover, enough);
        // Whoever dropped the other end does not want to know.
        let _ = tell.send(report);
    };
    // CHECK(b2-in-background): to list a root with many names takes longer than many programs live.
    let started = thread::Builder::new().name("mortmain-sweep".into()).spawn(work);
    let report = match started {
        Ok(_) => Ok(report),
        // CHECK(b3-no-thread): a program that may not start a thread still does its work.
        Err(error) => Err(error.raw_os_error().map_or(Errno::EAGAIN, Errno)),
    };
    BackgroundSweep { report, path }
}

fn sweep<K: Kernel, P: Prober<K>, R: Remover<K>>(
    root: &Root<K>,
    options: &SweepOptions,
    prober: &mut P,
    remover: &mut R,
) -> Report {
    sweep_until(root, options.dry_run, prober, remover, over(options.budget))
}

/// Whether so much time has passed since now.
fn over(budget: Option<Duration>) -> impl FnMut() -> bool + use<> {
    // A time that no clock can show is never over.
    let end = budget.and_then(|budget| Instant::now().checked_add(budget));
    move || end.is_some_and(|end| Instant::now() >= end)
}

fn sweep_until<K: Kernel, P: Prober<K>, R: Remover<K>>(
    root: &Root<K>,
    dry_run: bool,
    prober: &mut P,
    remover: &mut R,
    mut enough: impl FnMut() -> bool,
) -> Report {
    let options = protocol::SweepOptions { dry_run, holding: holding().clone() };
    root.sweep_until(&options, &mut HeldNow(prober), remover, &mut enough)
}

/// Asks which claims this process holds when it matters. The sweep was told
/// when it began, and the program beside it goes on making claims.
struct HeldNow<'p, P>(&'p mut P);

impl<K: Kernel, P: Prober<K>> Prober<K> for HeldNow<'_, P> {
    fn lease(&mut self, claim: &Candidate<'_, K>) -> Finding {
        self.0.lease(claim)
    }

    fn owner(&mut self, claim: &Candidate<'_, K>) -> Finding {
        let finding = self.0.owner(claim);
        match finding.evidence {
            // CHECK(l2-held-since): made since the sweep began, it is no leaving of a program that
            // this one replaced.
            Evidence::OwnerEnded(seen, Ended::ReplacedByExec)
                if holding().contains(&claim.random()) =>
            {
                Finding::alive(Evidence::OwnerRuns(seen))
            }
            _ => finding,
        }
    }

    fn commands(&mut self, claim: &Candidate<'_, K>) -> Finding {
        self.0.commands(claim)
    }

    fn life(&mut self, claims: &[&Candidate<'_, K>]) -> Scan {
        self.0.life(claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Prefix;
    use crate::remove::{Condemned, Removal};
    use crate::report::Outcome;
    use crate::sys::{Answer, Call, ChildPlan, HostProgram, Pid, Reply};
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::string::ToString;
    use std::sync::{Arc, Mutex};
    use std::{format, panic};

    /// Longer than anything here takes on a loaded machine.
    const SOON: Duration = Duration::from_secs(20);

    /// What is done before each call, in the thread that makes it.
    type Before = Arc<dyn Fn(&Call) + Send + Sync>;

    /// The real kernel, with something that happens before its calls.
    #[derive(Clone)]
    struct Beset(Before);

    impl Kernel for Beset {
        type Program = HostProgram;

        fn call(&self, call: Call) -> Answer<Reply> {
            (self.0)(&call);
            Host.call(call)
        }

        fn spawn(&self, program: &mut HostProgram, plan: &ChildPlan) -> Answer<Pid> {
            Host.spawn(program, plan)
        }
    }

    fn beset(root: &Path, before: impl Fn(&Call) + Send + Sync + 'static) -> Root<Beset> {
        let prefix = Prefix::new("t").expect("it is a prefix");
        let path = PathBytes(root.as_os_str().as_bytes().into());
        Root::open(&Beset(Arc::new(before)), path, prefix).expect("the root is there")
    }

    fn namespace_in(scratch: &crate::Sandbox) -> Namespace {
        Namespace::at(scratch.path(), "t").expect("the root is there")
    }

    /// A claim that nobody uses.
    fn given_up(namespace: &Namespace) {
        namespace.create().expect("a claim").release().expect("it is its owner's");
    }

    #[test]
    fn a_sweep_in_the_background_returns_before_its_first_call() {
        let scratch = crate::sandbox!("sweep-begins").expect("there is room");
        let namespace = namespace_in(&scratch);
        given_up(&namespace);
        let gate = Arc::new(Mutex::new(()));
        let entrance = Arc::clone(&gate);
        let (call, called) = channel();
        let root = beset(scratch.path(), move |_| {
            // Nobody may be there any more who wants to know.
            let _ = call.send(thread::current().id());
            drop(entrance.lock());
        });
        // Those that opened the root.
        called.try_iter().for_each(drop);

        let shut = gate.lock().expect("nobody has panicked with it");
        let (tell, returned) = channel();
        let caller = thread::spawn(move || {
            let sweep = in_background(root, SweepOptions::default(), Probes, Removes);
            tell.send(sweep).expect("somebody waits for it");
        });
        let first = called.recv_timeout(SOON).expect("it makes a call");
        assert_ne!(first, caller.thread().id(), "it waits for every call of the sweep");
        let sweep = returned.recv_timeout(SOON).expect("it waits for no call of the sweep");
        assert_eq!(sweep.receiver().expect("there is a thread").try_recv().ok(), None);
        drop(shut);
        assert_eq!(sweep.join().expect("it ends").removed(), 1);
        caller.join().expect("it did not panic");
    }

    #[test]
    fn nobody_has_to_wait_for_a_sweep_in_the_background() {
        let scratch = crate::sandbox!("sweep-nobody-waits").expect("there is room");
        let namespace = namespace_in(&scratch);
        given_up(&namespace);
        let begin = || {
            let (open, gate) = channel();
            let prober = Waits(gate);
            let options = SweepOptions::default();
            (namespace.sweep_in_background_with(options, prober, Removes), open)
        };
        let (sweep, _shut) = begin();
        drop(sweep);
        let (sweep, _shut) = begin();
        assert_eq!(sweep.wait_at_most(Duration::from_millis(1)), Ok(None));
    }

    /// A prober that waits until the other end of its channel has gone.
    struct Waits(Receiver<()>);

    impl Prober<Host> for Waits {
        fn lease(&mut self, claim: &Candidate<'_, Host>) -> Finding {
            let _ = self.0.recv_timeout(SOON);
            Probes.lease(claim)
        }

        fn owner(&mut self, claim: &Candidate<'_, Host>) -> Finding {
            Probes.owner(claim)
        }

        fn commands(&mut self, claim: &Candidate<'_, Host>) -> Finding {
            Probes.commands(claim)
        }
    }

    #[test]
    fn a_panic_of_a_sweep_in_the_background_is_an_error_and_nothing_more() {
        struct Panics;
        impl Remover<Host> for Panics {
            fn remove(&mut self, claim: &Condemned<'_, Host>) -> Removal {
                panic!("{} is met by a remover that panics", claim.name())
            }
        }
        let scratch = crate::sandbox!("sweep-panics").expect("there is room");
        let namespace = namespace_in(&scratch);
        given_up(&namespace);
        let begin = || namespace.sweep_in_background_with(SweepOptions::default(), Probes, Panics);
        let expected = format!(
            "cannot sweep in the background {}: its thread panicked; report it, with what it \
             printed; a later sweep goes on where it was",
            scratch.path().display()
        );
        let error = begin().join().expect_err("it panicked");
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Panicked, expected));
        let error = begin().wait_at_most(SOON).expect_err("it panicked");
        assert_eq!(error.kind(), ErrorKind::Panicked);
        assert_eq!(namespace.sweep().removed(), 1);
    }

    #[test]
    fn a_claim_made_beside_a_sweep_is_its_programs_own_even_without_its_lease() {
        let scratch = crate::sandbox!("sweep-without-its-lease").expect("there is room");
        let namespace = namespace_in(&scratch);
        let made = Arc::new(Mutex::new(None));
        let (slot, maker) = (Arc::clone(&made), namespace.clone());
        let root = beset(scratch.path(), move |call| {
            let mut slot = slot.lock().expect("nobody has panicked with it");
            if matches!(call, Call::ReadDir { .. }) && slot.is_none() {
                let claim = maker.create().expect("a claim");
                lose_lease(&claim);
                *slot = Some(claim);
            }
        });
        let report = sweep(&root, &SweepOptions::default(), &mut Probes, &mut Removes);
        let [entry] = &report.entries[..] else { panic!("{report}") };
        let kept = format!("kept: owner {} ", std::process::id());
        assert!(entry.outcome.to_string().starts_with(&kept), "{report}");
        assert!(matches!(entry.outcome, Outcome::Kept(_)), "{report}");
    }

    /// Closes the lease behind its claim's back, as a program does that closes what it did not open.
    fn lose_lease(claim: &crate::Claim) {
        let directory = claim.path().parent().expect("it lies in the claim");
        for entry in fs::read_dir("/proc/thread-self/fd").expect("/proc is there") {
            let entry = entry.expect("it can be read");
            if fs::read_link(entry.path()).is_ok_and(|target| target == directory) {
                let number = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
                nix::unistd::close(number.expect("it is a number")).expect("it is open");
            }
        }
    }
}
