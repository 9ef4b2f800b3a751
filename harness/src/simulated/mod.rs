//! Simulated processes: the real implementation, run one call at a time.
//!
//! A process is a deterministic function of the answers that it gets. So there
//! are two ways to run one, behind the same trait [`Engine`]:
//!
//! * [`Live`] keeps a coroutine for each process and resumes it with each answer;
//! * [`Trie`] learns what each program asks after each row of answers, and runs
//!   a coroutine only for a row that it has not met. A process is then a number,
//!   which is copied and compared for nothing, and explorers can visit millions
//!   of states of real code.
//!
//! [`Programs`] says what there is to run, [`WorldKernel`] and [`WorldChild`]
//! are the kernels that a program sees, [`subject`] has the programs over a
//! design.

mod engine;
mod kernel;
mod live;
mod programs;
pub mod subject;
mod trie;

pub use self::engine::{Diverged, Engine};
pub use self::kernel::{WorldChild, WorldKernel};
pub use self::live::{Live, LiveProcess};
pub use self::programs::{ChildPart, Origin, Programs};
pub use self::trie::{Trie, TrieCounts};
