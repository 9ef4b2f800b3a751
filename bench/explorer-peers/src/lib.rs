//! The lab's explorers beside those of other projects, over the same work.
//!
//! The work is a design's own code in the lab's own world: an owner makes a directory and keeps it, a
//! sweep runs beside it, and when both are over everybody is killed and one more sweep must leave
//! nothing. Ours run it as they run everything. [shuttle] and [loom] run it as two threads, each of
//! whose calls is one point at which they may go on with the other one ([`Point`]). So the code, the
//! world and the judge are the same, and what differs is who decides what comes next, and how.
//!
//! * [`ours`] runs it, and counts without running it how many orders of calls there are;
//! * [`peers`] runs it under the others.
//!
//! What it deliberately is not: a comparison of what they are for. Loom goes through the effects of a
//! weak memory order as well, which nothing here has; shuttle explores threads of any program. Neither
//! has kills: here the calls of the dead do nothing.
//!
//! [shuttle]: https://docs.rs/shuttle
//! [loom]: https://docs.rs/loom

mod execution;
pub mod ours;
pub mod peers;
mod work;

pub use self::execution::{End, Execution, Kill, Nobody, Point, Process};
pub use self::work::Work;
