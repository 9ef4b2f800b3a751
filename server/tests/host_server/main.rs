//! The server as its clients meet it: real processes, real deaths, and what they leave in the root.

mod client;
mod server;
mod support;
