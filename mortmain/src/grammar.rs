//! The names that the protocol gives and looks at, and nothing else.
//!
//! ```text
//! <prefix>-<random>              a claim
//! .<prefix>-<random>.new         the same being made      (staging)
//! .<prefix>-<random>.dead-<x>    the same being removed   (tombstone)
//! ```
//!
//! `<random>` and `<x>` are eleven of `[a-z2-7]` and then one of `[2-7]`. The
//! length is fixed and the hyphen is not in the alphabet, so a name belongs to
//! one prefix at most: `foo` never sees `foo-bar-…` as its own. The digit at
//! the end keeps words out: `foo-certificates` is somebody's directory.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::sys::{Answer, Kernel, KernelExt, Name};

/// Eleven of `[a-z2-7]` and one of `[2-7]`: 57 random bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Random([u8; Random::BYTES]);

const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const DIGITS: &[u8; 6] = b"234567";

impl Random {
    /// Length of the text, in bytes.
    pub const BYTES: usize = 12;

    /// How many there are.
    const COUNT: u64 = (1 << 55) * 6;

    /// A fresh one.
    pub(crate) fn fresh<K: Kernel>(kernel: &K) -> Answer<Random> {
        let number = kernel.random()? % Random::COUNT;
        Ok(Random::from_number(number).expect("it is below the count"))
    }

    /// The one of a number below [`Random::COUNT`].
    pub(crate) fn from_number(number: u64) -> Option<Random> {
        if number >= Random::COUNT {
            return None;
        }
        let (letters, digit) = (number / 6, number % 6);
        let mut text = [0; Random::BYTES];
        let (last, others) = text.split_last_mut()?;
        *last = DIGITS[digit as usize];
        for (at, slot) in others.iter_mut().rev().enumerate() {
            *slot = LETTERS[(letters >> (5 * at)) as usize & 31];
        }
        Some(Random(text))
    }

    /// The number that it stands for.
    pub(crate) fn number(self) -> u64 {
        let value = |letter: &u8| match letter {
            b'a'..=b'z' => letter - b'a',
            _ => letter - b'2' + 26,
        };
        let [others @ .., last] = &self.0;
        let letters =
            others.iter().fold(0, |number, letter| number << 5 | u64::from(value(letter)));
        letters * 6 + u64::from(last - b'2')
    }

    /// Reads the text.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Random> {
        let text: [u8; Random::BYTES] = text.try_into().ok()?;
        let [others @ .., last] = &text;
        let fits = others.iter().all(|byte| LETTERS.contains(byte));
        // CHECK(l5-no-word): a directory that merely ends in a word of twelve letters is nobody's claim.
        let fits = fits && DIGITS.contains(last);
        fits.then_some(Random(text))
    }

    /// The text.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What a program calls its claims by: letters, digits, `_`, `-` and `.`, at
/// most 64, beginning with a letter or digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Prefix(String);

impl Prefix {
    /// Longest prefix, in bytes.
    pub const BYTES_MAX: usize = 64;

    /// `None` when the text is no prefix.
    #[must_use]
    pub fn new(text: &str) -> Option<Prefix> {
        let fits = text.len() <= Prefix::BYTES_MAX
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        fits.then(|| Prefix(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Name of the claim `random`.
    #[must_use]
    pub fn published(&self, random: &Random) -> Name {
        self.name(&["", "-"], random, &[])
    }

    /// Name of the claim `random` while it is made.
    #[must_use]
    pub fn staging(&self, random: &Random) -> Name {
        self.name(&[".", "-"], random, &[b".new"])
    }

    /// Name of the claim `random` while it is removed.
    #[must_use]
    pub fn tombstone(&self, random: &Random, fresh: &Random) -> Name {
        self.name(&[".", "-"], random, &[b".dead-", fresh.bytes()])
    }

    /// Name of a directory that no sweep ever looks at (c4): the tilde can stand
    /// in no prefix.
    #[must_use]
    pub fn unclaimed(&self, random: &Random) -> Name {
        self.name(&["", "~"], random, &[])
    }

    fn name(&self, [before, between]: &[&str; 2], random: &Random, after: &[&[u8]]) -> Name {
        let mut bytes = Vec::from(before.as_bytes());
        bytes.extend_from_slice(self.0.as_bytes());
        bytes.extend_from_slice(between.as_bytes());
        bytes.extend_from_slice(random.bytes());
        after.iter().for_each(|part| bytes.extend_from_slice(part));
        Name::new(&bytes).expect("a prefix is at most 64 bytes of a name")
    }

    /// Reads a name of this prefix; `None` for every other.
    #[must_use]
    pub fn parse(&self, name: &Name) -> Option<ClaimName> {
        let bytes = name.bytes();
        let (hidden, bytes) = match bytes.strip_prefix(b".") {
            Some(rest) => (true, rest),
            None => (false, bytes),
        };
        // CHECK(l5-own-prefix): another program's name may begin like this one's.
        let rest = bytes.strip_prefix(self.0.as_bytes())?.strip_prefix(b"-")?;
        let (random, rest) = rest.split_at_checked(Random::BYTES)?;
        let random = Random::parse(random)?;
        let place = match (hidden, rest) {
            (false, b"") => Place::Published,
            (true, b".new") => Place::Staging,
            // CHECK(r2-see-tombstones): nobody else finishes a removal that was killed.
            (true, rest) => {
                Random::parse(rest.strip_prefix(b".dead-")?)?;
                Place::Tombstone
            }
            _ => return None,
        };
        Some(ClaimName { random, place })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a name is one that the protocol gives, of whatever prefix: a claim's,
/// a staging's, a tombstone's or an unclaimed directory's.
pub(crate) fn is_given(name: &Name) -> bool {
    random_of(name).is_some()
}

/// What all the names of a claim have in common, or of an unclaimed directory, if this is one of them.
pub(crate) fn random_of(name: &Name) -> Option<Random> {
    fn read(bytes: &[u8]) -> Option<Random> {
        let (separators, rest) = match bytes.strip_prefix(b".") {
            None => (&b"-~"[..], bytes),
            Some(rest) => {
                let staging = rest.strip_suffix(b".new");
                let tombstone = || {
                    let (rest, fresh) = split_random(rest)?;
                    Random::parse(fresh)?;
                    rest.strip_suffix(b".dead-")
                };
                (&b"-"[..], staging.or_else(tombstone)?)
            }
        };
        let (before, random) = split_random(rest)?;
        let random = Random::parse(random)?;
        let (separator, prefix) = before.split_last()?;
        Prefix::new(str::from_utf8(prefix).ok()?)?;
        separators.contains(separator).then_some(random)
    }
    fn split_random(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
        bytes.split_at_checked(bytes.len().checked_sub(Random::BYTES)?)
    }
    read(name.bytes())
}

/// Where a claim stands in its life, by its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// Being made.
    Staging,
    /// In use, or left behind.
    Published,
    /// Being removed.
    Tombstone,
}

impl Place {
    /// The place in a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Place::Staging => "staging",
            Place::Published => "claim",
            Place::Tombstone => "tombstone",
        }
    }
}

/// A name that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClaimName {
    /// The claim.
    pub random: Random,
    /// Where it stands.
    pub place: Place,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefix(text: &str) -> Prefix {
        Prefix::new(text).expect("a prefix")
    }

    #[track_caller]
    fn check(prefix_text: &str, name: &[u8], want: Option<Place>) {
        let name = Name::new(name).expect("one component");
        let found = prefix(prefix_text).parse(&name).map(|found| found.place);
        assert_eq!(found, want, "{name} for {prefix_text}");
    }

    #[test]
    fn what_is_told_of_a_name_is_its_text() {
        let random = Random::parse(b"abcdefghij27").expect("twelve of the alphabet");
        assert_eq!(alloc::format!("{random} {random:?}"), "abcdefghij27 abcdefghij27");
        assert_eq!(prefix("foo").text(), "foo");
        assert_eq!(alloc::format!("{}", prefix("foo")), "foo");
        let words = [Place::Staging, Place::Published, Place::Tombstone].map(Place::word);
        assert_eq!(words, ["staging", "claim", "tombstone"]);
    }

    #[test]
    fn names_are_read_exactly() {
        check("foo", b"foo-abcdefghij27", Some(Place::Published));
        check("foo", b".foo-abcdefghij27.new", Some(Place::Staging));
        check("foo", b".foo-abcdefghij27.dead-aaaaaaaaaaa2", Some(Place::Tombstone));
        for stranger in [
            &b"foo-abcdefghij2"[..],
            b"foo-abcdefghij277",
            b"foo-ABCDEFGHIJ27",
            b"foo-abcdefghij01",
            b"foo-certificates",
            b"foo-repositories",
            b"foo-abcdefghij27.new",
            b".foo-abcdefghij27",
            b".foo-abcdefghij27.dead",
            b".foo-abcdefghij27.dead-short",
            b".foo-abcdefghij27.new.bak",
            b"foo-abcdefghij27.bak",
            b"foo",
            b"foo-",
            b"\xff",
        ] {
            check("foo", stranger, None);
        }
    }

    #[test]
    fn a_prefix_of_a_prefix_sees_nothing_of_the_other() {
        check("foo", b"foo-bar-abcdefghij27", None);
        check("foo-bar", b"foo-bar-abcdefghij27", Some(Place::Published));
        check("foo", b".foo-bar-abcdefghij27.new", None);
        // Twelve of the alphabet as the tail of a prefix still leave one reading.
        check("foo", b"foo-abcdefghijk2-abcdefghij27", None);
        check("foo-abcdefghijk2", b"foo-abcdefghijk2", None);
    }

    #[test]
    fn what_no_sweep_may_see_is_no_name() {
        let random = Random::parse(b"abcdefghij27").expect("twelve");
        let name = prefix("foo").unclaimed(&random);
        assert_eq!(name.bytes(), b"foo~abcdefghij27");
        assert_eq!(prefix("foo").parse(&name), None);
    }

    #[test]
    fn a_name_of_any_prefix_is_known_for_one_of_the_protocols() {
        let given = |name: &[u8]| is_given(&Name::new(name).expect("one component"));
        for name in [
            &b"foo-abcdefghij27"[..],
            b"foo-bar.baz-abcdefghij27",
            b"foo~abcdefghij27",
            b".foo-abcdefghij27.new",
            b".foo-abcdefghij27.dead-aaaaaaaaaaa2",
        ] {
            assert!(given(name), "{}", name.escape_ascii());
        }
        for name in [
            &b"foo"[..],
            b"abcdefghij27",
            b"-abcdefghij27",
            b"foo.abcdefghij27",
            b"foo-certificates",
            b"f\xc3\xb6-abcdefghij27",
            b".foo-abcdefghij27",
            b".foo~abcdefghij27.new",
            b".foo-abcdefghij27.dead-certificates",
            b"foo-abcdefghij27.new",
            b"pytest-of-me",
        ] {
            assert!(!given(name), "{}", name.escape_ascii());
        }
    }

    #[test]
    fn a_prefix_is_a_plain_word() {
        let long = "a".repeat(65);
        for bad in ["", ".foo", "-foo", "a/b", "a b", "é", "a\0", long.as_str()] {
            assert_eq!(Prefix::new(bad), None, "{bad:?}");
        }
        for good in ["a", "my-app", "com.example.app", "A_1"] {
            assert!(Prefix::new(good).is_some(), "{good:?}");
        }
    }

    proptest! {
        #[test]
        fn a_random_part_is_its_number(number in 0u64..Random::COUNT) {
            let random = Random::from_number(number).expect("below the count");
            prop_assert_eq!(random.number(), number);
            prop_assert_eq!(Random::parse(random.bytes()), Some(random));
        }

        #[test]
        fn every_name_we_give_is_read_back(number in 0u64..Random::COUNT, text in "[a-z0-9][a-z0-9._-]{0,63}") {
            let random = Random::from_number(number).expect("below the count");
            let prefix = prefix(&text);
            for (name, place) in [
                (prefix.published(&random), Place::Published),
                (prefix.staging(&random), Place::Staging),
                (prefix.tombstone(&random, &random), Place::Tombstone),
            ] {
                prop_assert_eq!(prefix.parse(&name), Some(ClaimName { random, place }));
                prop_assert!(is_given(&name));
            }
            prop_assert!(is_given(&prefix.unclaimed(&random)));
        }
    }
}
