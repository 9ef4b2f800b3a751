//! The table of fault classes and the stories that tell them, as it stands in docs/stories.md.

use std::collections::BTreeMap;
use std::io::{self, Write};

use mortmain_harness::scenario::Story;

/// The classes of faults that public reports fall into, by their letters.
const CLASSES: [(char, &str); 24] = [
    ('A', "a live directory is deleted by a cleaner"),
    ('B', "leaked for ever after a SIGKILL or a crash"),
    ('C', "pids are reused"),
    ('D', "pid namespaces and containers share a directory"),
    ('E', "orphaned children outlive the owner"),
    ('F', "daemonised children leave the group"),
    ('G', "a bind mount or a symbolic link inside the directory"),
    ('H', "a FIFO, a device, a huge or a hostile file in the place of a marker"),
    ('I', "locks on network, overlay and shared file systems"),
    ('J', "a stale lock is broken by two waiters at once"),
    ('K', "a lock file is unlinked while another locks the old inode"),
    ('L', "a crash half-way through creation or removal"),
    ('M', "things that block a deletion"),
    ('N', "very many leftovers"),
    ('O', "names and depth"),
    ('P', "clock jumps"),
    ('Q', "sharing violations on Windows"),
    ('R', "no space while a marker is written"),
    ('S', "no descriptors left"),
    ('T', "sockets passed by a service manager"),
    ('U', "tests that leak directories"),
    ('V', "zombies"),
    ('W', "a lease that something unrelated has inherited"),
    ('X', "blind spots of scanners"),
];

/// Writes the table.
pub(crate) fn table(stories: &[&Story], out: &mut impl Write) -> io::Result<()> {
    let mut by_class: BTreeMap<char, Vec<&Story>> = BTreeMap::new();
    for story in stories {
        let mut letters: Vec<char> =
            story.classes.iter().filter_map(|class| class.chars().next()).collect();
        letters.dedup();
        for letter in letters {
            by_class.entry(letter).or_default().push(story);
        }
    }
    writeln!(out, "| class | fault | stories |\n|---|---|---|")?;
    for (letter, fault) in CLASSES {
        let told = by_class.get(&letter).map_or(&[][..], Vec::as_slice);
        let names: Vec<String> = told.iter().map(|story| format!("`{}`", story.name)).collect();
        let names = if names.is_empty() { "*open*".into() } else { names.join(", ") };
        writeln!(out, "| {letter} | {fault} | {names} |")?;
    }
    Ok(())
}
