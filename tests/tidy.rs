//! Tests of the tree itself: what a reviewer would otherwise have to remember.
//!
//! Each module holds one check: a function from the texts of the tree to what is
//! wrong with them, tests of that function on small planted trees, and one test
//! that runs it on the real one. A check also counts what it looked at, and the
//! test on the real tree fails if that is nothing: a check that no longer finds
//! its subject is not a pass.
//!
//! Nothing here asks git (a source archive has none), builds or starts anything.

#[path = "tidy/tree.rs"]
mod tree;

#[path = "tidy/source.rs"]
mod source;

#[path = "tidy/check_comments.rs"]
mod check_comments;
#[path = "tidy/child_output.rs"]
mod child_output;
#[path = "tidy/core_bans.rs"]
mod core_bans;
#[path = "tidy/dependencies.rs"]
mod dependencies;
#[path = "tidy/filterset.rs"]
mod filterset;
#[path = "tidy/filtersets.rs"]
mod filtersets;
#[path = "tidy/headers.rs"]
mod headers;
#[path = "tidy/members.rs"]
mod members;
#[path = "tidy/mentions.rs"]
mod mentions;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/processes.rs"]
mod processes;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/sandbox_tags.rs"]
mod sandbox_tags;
#[path = "tidy/scripts.rs"]
mod scripts;
#[path = "tidy/words.rs"]
mod words;
