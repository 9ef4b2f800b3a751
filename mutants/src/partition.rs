//! `slice:k/n`: every n-th of a list, from the k-th on, so that n machines share the work.

use std::str::FromStr;

/// One of `count` slices, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    index: usize,
    count: usize,
}

impl Partition {
    /// Whether what is at a place of the list, from 0, is in this slice.
    pub(crate) fn holds(self, place: usize) -> bool {
        place % self.count == self.index - 1
    }
}

impl FromStr for Partition {
    type Err = String;

    fn from_str(text: &str) -> Result<Partition, String> {
        let numbers = text.strip_prefix("slice:").and_then(|rest| rest.split_once('/'));
        let (index, count) = numbers.ok_or("give slice:K/N, such as slice:1/4")?;
        let number = |text: &str| {
            text.parse::<usize>().map_err(|error| format!("{text:?} is no number: {error}"))
        };
        let (index, count) = (number(index)?, number(count)?);
        if index < 1 || index > count {
            return Err(format!("the first number is from 1 to the second, {count}"));
        }
        Ok(Partition { index, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_in_one_slice() {
        let slices: Vec<Partition> =
            (1..=3).map(|k| format!("slice:{k}/3").parse().unwrap()).collect();
        for place in 0..10 {
            assert_eq!(slices.iter().filter(|slice| slice.holds(place)).count(), 1);
        }
        assert!(slices[0].holds(0));
        assert!(slices[2].holds(5));
    }

    #[test]
    fn what_is_no_slice_is_refused() {
        for text in ["", "1/2", "slice:0/2", "slice:3/2", "slice:1/0", "slice:a/2", "hash:1/2"] {
            assert!(text.parse::<Partition>().is_err(), "{text}");
        }
    }
}
