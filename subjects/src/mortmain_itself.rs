//! The implementation itself, as one design among the others.

use mortmain::protocol::{Claim, Root, Started, SweepOptions};
use mortmain::sys::{Answer, ChildKernel, ChildPlan, PathBytes, Wait, child_part};
use mortmain::{Prefix, Probes, Removes};

use crate::design::{Design, Error};
use crate::system::System;

/// The design.
#[derive(Clone, Copy, Debug)]
pub struct Mortmain;

fn root<K: System>(kernel: &K, path: &PathBytes) -> Result<Root<K>, Error> {
    // OK because a letter is a prefix.
    let prefix = Prefix::new("p").expect("a letter is a prefix");
    Ok(Root::open(kernel, path.clone(), prefix)?)
}

impl Design for Mortmain {
    type Dir<K: System> = Claim<K>;
    type Started = Started;

    fn create<K: System>(kernel: &K, path: &PathBytes) -> Result<Claim<K>, Error> {
        Ok(root(kernel, path)?.create()?)
    }

    fn path<K: System>(claim: &Claim<K>) -> PathBytes {
        claim.path()
    }

    fn files<K: System>(claim: &Claim<K>) -> PathBytes {
        claim.files()
    }

    fn spawn<K: System>(claim: &mut Claim<K>, program: &mut K::Program) -> Result<Started, Error> {
        Ok(claim.spawn(program)?)
    }

    fn child<C: ChildKernel>(child: &C, plan: &ChildPlan) -> Answer<()> {
        child_part(child, plan)
    }

    fn wait<K: System>(claim: &mut Claim<K>, started: &Started) -> Result<(), Error> {
        claim.wait(started, Wait::Forever)?;
        Ok(())
    }

    fn end<K: System>(claim: &mut Claim<K>, started: &Started) -> Result<(), Error> {
        claim.end(started)?;
        Ok(())
    }

    /// What is still in use is released to the sweeps.
    fn close<K: System>(claim: Claim<K>) -> Result<(), Error> {
        match claim.close() {
            Ok(_) => Ok(()),
            Err(refused) => Err(refused.error.into()),
        }
    }

    fn sweep<K: System>(kernel: &K, path: &PathBytes) -> Result<(), Error> {
        let options = SweepOptions::default();
        let report = root(kernel, path)?.sweep_with(&options, &mut Probes, &mut Removes);
        match report.trouble {
            None => Ok(()),
            Some(trouble) => Err(Error::of(trouble.what, path)(trouble.errno)),
        }
    }
}
