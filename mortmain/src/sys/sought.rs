//! What a look at a process looks for: claims by their names in paths, and by
//! what a cookie calls them.
//!
//! The kernel tells where a process works by paths. They follow every rename,
//! keep what is deleted, and read differently in each mount namespace; but
//! whatever leads into a claim goes through its own name, which nobody else's
//! directory has by chance. So a path is compared component by component, with
//! no regard to what is above the claim: a directory of the same name elsewhere,
//! a copy, can at worst keep for longer.

use alloc::vec::Vec;

use super::name::Name;
use crate::cookie;
use crate::grammar::Random;

/// The claims of one scan, each known by its place in the list it was made of.
///
/// A call owns its data, so this is copied for every process that is looked at:
/// the names lie in one piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sought {
    /// All names, one after the other.
    names: Vec<u8>,
    /// Where each name ends.
    ends: Vec<usize>,
    /// What each is called by a cookie.
    randoms: Vec<Random>,
    /// The places, sorted by name.
    by_name: Vec<usize>,
    /// Which lengths the names have, a bit a length: most components of a path
    /// are passed over by this alone.
    lengths: [u64; 4],
}

impl Sought {
    /// Claims by name and random part.
    #[must_use]
    pub fn new(claims: &[(&Name, Random)]) -> Sought {
        let mut names = Vec::new();
        let mut ends = Vec::with_capacity(claims.len());
        let mut lengths = [0u64; 4];
        for (name, _) in claims {
            names.extend_from_slice(name.bytes());
            ends.push(names.len());
            // OK because a name has at most 255 bytes.
            lengths[name.bytes().len() / 64] |= 1 << (name.bytes().len() % 64);
        }
        let mut by_name: Vec<usize> = (0..claims.len()).collect();
        by_name.sort_unstable_by(|one, other| claims[*one].0.cmp(claims[*other].0));
        let randoms = claims.iter().map(|(_, random)| *random).collect();
        Sought { names, ends, randoms, by_name, lengths }
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name of a claim.
    ///
    /// # Panics
    /// When there is no such place.
    #[must_use]
    pub fn name(&self, place: usize) -> &[u8] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.names[start..self.ends[place]]
    }

    /// The claims that a path leads into, without those that it ends at.
    pub fn below<'s>(&'s self, path: &'s [u8]) -> impl Iterator<Item = usize> + 's {
        let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        // CHECK(l4-not-the-claim-itself): every sweep that looks at it has it open.
        let path = &path[..end];
        self.at_or_below(path)
    }

    /// The claims that a path leads into or ends at.
    pub fn at_or_below<'s>(&'s self, path: &'s [u8]) -> impl Iterator<Item = usize> + 's {
        path.split(|byte| *byte == b'/').filter_map(|component| self.named(component))
    }

    /// The claims that an entry of an environment names, if it is a cookie.
    pub fn carried<'s>(&'s self, entry: &'s [u8]) -> impl Iterator<Item = usize> + 's {
        let value = entry.strip_prefix(cookie::VARIABLE.as_bytes());
        let list = value.and_then(|value| value.strip_prefix(b"=")).unwrap_or_default();
        // CHECK(l4-cookie-whole-entry): what merely contains the text names another thing.
        let carried = cookie::claims(list);
        self.all(carried)
    }

    fn all<'s>(
        &'s self,
        claims: impl Iterator<Item = Random> + 's,
    ) -> impl Iterator<Item = usize> + 's {
        claims.flat_map(|random| self.random(random))
    }

    fn named(&self, component: &[u8]) -> Option<usize> {
        let length = component.len();
        if self.lengths.get(length / 64)? >> (length % 64) & 1 == 0 {
            return None;
        }
        let found = self.by_name.binary_search_by(|place| self.name(*place).cmp(component));
        Some(self.by_name[found.ok()?])
    }

    /// The claims of a random part: more than one where a name was made again.
    fn random(&self, random: Random) -> impl Iterator<Item = usize> + '_ {
        let places = self.randoms.iter().enumerate();
        places.filter(move |(_, other)| **other == random).map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sought() -> Sought {
        let names = [
            (&b"t-zaaaaaaaaaa2"[..], &b"zaaaaaaaaaa2"[..]),
            (b"t-baaaaaaaaaa2", b"baaaaaaaaaa2"),
            (b".t-caaaaaaaaaa2.dead-daaaaaaaaaa2", b"caaaaaaaaaa2"),
        ];
        let claims = names.map(|(name, random)| {
            (Name::new(name).expect("one component"), Random::parse(random).expect("a random part"))
        });
        Sought::new(&claims.each_ref().map(|(name, random)| (name, *random)))
    }

    #[track_caller]
    fn check(path: &[u8], below: &[usize], at: &[usize]) {
        let sought = sought();
        assert_eq!(sought.below(path).collect::<Vec<_>>(), below, "{}", path.escape_ascii());
        assert_eq!(sought.at_or_below(path).collect::<Vec<_>>(), at, "{}", path.escape_ascii());
    }

    #[test]
    fn a_path_leads_into_the_claims_that_it_goes_through() {
        check(b"/tmp/t-baaaaaaaaaa2/files/x", &[1], &[1]);
        check(b"/elsewhere/t-baaaaaaaaaa2/files (deleted)", &[1], &[1]);
        check(b"/tmp/.t-caaaaaaaaaa2.dead-daaaaaaaaaa2/files", &[2], &[2]);
        check(b"/t-zaaaaaaaaaa2/files/t-baaaaaaaaaa2/files", &[0, 1], &[0, 1]);
        check(b"/t-zaaaaaaaaaa2/files/t-baaaaaaaaaa2", &[0], &[0, 1]);
    }

    #[test]
    fn a_longer_last_component_is_another_name() {
        check(b"/tmp/t-baaaaaaaaaa2x", &[], &[]);
        check(b"/tmp/t-baaaaaaaaaa2/", &[1], &[1]);
    }

    #[test]
    fn all_that_are_sought_count() {
        assert_eq!(sought().len(), 3);
        assert!(!sought().is_empty());
        assert!(Sought::new(&[]).is_empty());
    }

    #[test]
    fn a_path_that_ends_at_a_claim_is_not_below_it() {
        check(b"/tmp/t-baaaaaaaaaa2", &[], &[1]);
        check(b"/t-baaaaaaaaaa2", &[], &[1]);
        check(b"t-baaaaaaaaaa2", &[], &[1]);
    }

    #[test]
    fn what_is_not_the_whole_name_leads_nowhere() {
        for path in [
            &b""[..],
            b"/",
            b"/tmp",
            b"socket:[1]",
            b"/tmp/t-baaaaaaaaaa2.bak/files/x",
            b"/tmp/xt-baaaaaaaaaa2/files/x",
            b"/tmp/t-baaaaaaaaaa2 (deleted)",
            b"/tmp/baaaaaaaaaa2/files/x",
            &[b'a'; 5000],
        ] {
            check(path, &[], &[]);
        }
    }

    #[test]
    fn a_cookie_is_a_whole_variable_and_a_whole_item_of_its_list() {
        let sought = sought();
        let carried = |entry: &[u8]| sought.carried(entry).collect::<Vec<_>>();
        assert_eq!(carried(b"MORTMAIN_CLAIM=baaaaaaaaaa2"), [1]);
        assert_eq!(carried(b"MORTMAIN_CLAIM=eaaaaaaaaaa2:caaaaaaaaaa2:zaaaaaaaaaa2"), [2, 0]);
        for entry in [
            &b"MORTMAIN_CLAIM="[..],
            b"MORTMAIN_CLAIM",
            b"MORTMAIN_CLAIMS=baaaaaaaaaa2",
            b"MORTMAIN_CLAIM=xbaaaaaaaaaa2",
            b"MORTMAIN_CLAIM=baaaaaaaaaa22",
            b"X=MORTMAIN_CLAIM=baaaaaaaaaa2",
            b"baaaaaaaaaa2",
        ] {
            assert_eq!(carried(entry), [0; 0], "{}", entry.escape_ascii());
        }
    }
}
