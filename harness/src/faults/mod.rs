//! Faults at an exact call: the lab's cheapest tools.
//!
//! A [`Tapped`] kernel lets a [`Hook`] see every call of one process, before and after, and answer
//! in the kernel's place. Three hooks do the work: [`Record`] notes what is called, [`KillAt`] kills
//! the process before or after its n-th call, [`FailAt`] lets the n-th call fail. They work over any
//! kernel and need no tracing, so they give a kill and an errno at every call of the code that
//! ships, on the real kernel at the speed of the real kernel. [`FaultyChild`] does the same between
//! fork and exec. [`kill_everywhere`] does a piece of work once for each of its calls, and is killed
//! there. [`FromTheFirst`] makes a position of a sweep the same call each time.
//!
//! Positions count from 1, and count every call of the seam, spawns and closes included.

mod armed;
mod child;
mod everywhere;
mod fail;
mod first;
mod kill;
mod record;
mod tap;

pub use self::armed::Armed;
pub use self::child::{ChildFault, FaultyChild};
pub use self::everywhere::{kill_everywhere, kill_self};
pub use self::fail::{FailAt, Failure, Fired, Repeat};
pub use self::first::FromTheFirst;
pub use self::kill::{KillAt, Moment};
pub use self::record::Record;
pub use self::tap::{Hook, Step, Tapped};
