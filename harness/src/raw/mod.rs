//! The crate's one room for `unsafe` code, each piece behind a safe function that keeps its contract.
#![expect(
    unsafe_code,
    reason = "what the safe wrappers of the system do not offer is wrapped here"
)]

pub(crate) mod arena;
pub(crate) mod coroutine;
pub(crate) mod descriptor;
pub(crate) mod fork;
pub(crate) mod interrupt;
pub(crate) mod process;
pub(crate) mod thread;
