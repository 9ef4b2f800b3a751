//! Evidence of life: who is seen to use a claim that is about to go (l4).
//!
//! The last question before a removal, and the only one whose answer can do no
//! more than keep: that nobody is seen proves nothing. It is asked of a whole
//! batch at once, since a look at every process is dear, and only under the
//! leases of the batch, since before that a command may still have been there
//! to leave something behind.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::evidence::{Evidence, Finding, Seen, User};
use crate::grammar::Random;
use crate::probe::PROC_UNUSABLE;
use crate::sys::{
    Answer, Identity, Kernel, KernelExt, MountView, Name, Pid, ProcView, Sought, Use, Uses,
};

/// Lists of all processes that are made in one scan. Whoever is in none but the
/// first has a parent that was looked at, but for a chain of forks that goes on
/// for longer than this: a known escape.
const LISTS_MAX: usize = 4;

/// How long a process is given to become another program.
const SETTLING_MILLIS: u32 = 1;

/// What a scan has found out about a batch of claims.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scan {
    /// For each claim: *gone* when nobody is seen to use it, *alive* when
    /// somebody is, *cannot tell* when the scan could not be made.
    pub findings: Vec<Finding>,
    /// How many processes could not be read, in whole or in part.
    pub unread: u64,
}

/// Looks for whoever uses these claims; `but` is not looked at.
///
/// Every process is looked at that there is when the last list is made, unless
/// it came up too late for it. A process that ends between a list and the look
/// at it may have forked before, and its child is in a later list.
pub(crate) fn scan<K: Kernel>(
    kernel: &K,
    me: &Identity,
    claims: &[(&Name, Random)],
    but: Option<Pid>,
) -> Scan {
    let sought = Sought::new(claims);
    let looked = |kernel: &K| -> Answer<Scan> {
        let Census { users, unread } = look_at_all(kernel, me, &sought, but)?;
        Ok(Scan { findings: users.iter().map(|users| finding(users)).collect(), unread })
    };
    match kernel.aside(looked) {
        Ok(scan) => scan,
        // CHECK(l4-scan-failed-keeps): who was not looked for may be there.
        Err(errno) => Scan {
            findings: alloc::vec![Finding::cannot_tell(Evidence::UseUnclear(errno)); claims.len()],
            unread: 0,
        },
    }
}

/// Everybody who uses each of some claims, and how many processes could not be
/// read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Census {
    pub(crate) users: Vec<Vec<User>>,
    pub(crate) unread: u64,
}

/// As [`scan`], with everybody who was seen.
pub(crate) fn census<K: Kernel>(
    kernel: &K,
    me: &Identity,
    claims: &[(&Name, Random)],
) -> Answer<Census> {
    let sought = Sought::new(claims);
    kernel.aside(|kernel| look_at_all(kernel, me, &sought, None))
}

fn look_at_all<K: Kernel>(
    kernel: &K,
    me: &Identity,
    sought: &Sought,
    but: Option<Pid>,
) -> Answer<Census> {
    // CHECK(l4-our-proc): the /proc of another namespace shows other processes, or none.
    if me.proc == ProcView::Foreign {
        return Err(PROC_UNUSABLE);
    }
    let mut users: Vec<Vec<User>> = (0..sought.len()).map(|_| Vec::new()).collect();
    let mut unread = 0;
    let mut mounts: Vec<MountView> = Vec::new();
    let mut looked_at = BTreeSet::new();
    let mut becoming = 0;
    for _ in 0..LISTS_MAX {
        let (mut ended, mut unsettled) = (false, 0);
        for pid in kernel.pids()? {
            if !looked_at.insert(pid) {
                continue;
            }
            // CHECK(l4-own-process): a sweep that works in what it judges is a user like any other.
            if but == Some(pid) {
                continue;
            }
            let uses = kernel.uses(pid, sought, &mounts)?;
            ended |= uses.ended;
            // CHECK(l4-becoming-another): a program has no environment until it is set up.
            if uses.unsettled {
                looked_at.remove(&pid);
                unsettled += 1;
            }
            // CHECK(l4-unread-told): what cannot be read is no evidence, and must not be silence.
            unread += u64::from(uses.unread);
            for (claim, how) in &uses.found {
                // CHECK(l4-cookie-own-user): nobody else can come into a claim by a path, and
                // anybody could pin one by a variable.
                if *how == Use::Cookie && !uses.uids.contains(&me.uid) {
                    continue;
                }
                meet(&mut users[*claim], pid, *how, &uses);
            }
            mounts.extend(uses.mounts);
        }
        becoming = unsettled;
        // CHECK(l4-second-list): whom it has forked before it ended is in no list that is older.
        if !ended && unsettled == 0 {
            break;
        }
        if unsettled > 0 {
            kernel.pause(SETTLING_MILLIS)?;
        }
    }
    unread += becoming;
    Ok(Census { users, unread })
}

/// Notes a use.
fn meet(users: &mut Vec<User>, pid: Pid, how: Use, uses: &Uses) {
    match users.iter_mut().rfind(|user| user.process.pid == pid) {
        // It was becoming another program when it was looked at before, or has several uses.
        Some(user) => {
            user.process.program.clone_from(&uses.program);
            if !user.uses.contains(&how) {
                user.uses.push(how);
            }
        }
        None => {
            let process = Seen { pid, program: uses.program.clone() };
            users.push(User { process, uses: alloc::vec![how] });
        }
    }
}

/// What it comes to that these use a claim.
pub(crate) fn finding(users: &[User]) -> Finding {
    let first = users.first().and_then(|first| Some((first, first.uses.first()?)));
    match first {
        Some((first, how)) => {
            let (by, more) = (first.process.clone(), users.len() - 1);
            Finding::alive(Evidence::Used { by, how: *how, more })
        }
        None => Finding::gone(Evidence::Unused),
    }
}
