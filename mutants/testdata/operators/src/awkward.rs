//! Code that switches are hard to write around. All of it has to compile with them.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// The sum of what the parts below come to.
pub fn awkward() -> usize {
    chains(Some(3), 3)
        + places()
        + arms(7)
        + temporaries(&RefCell::new(vec![1, 2]))
        + closures()
        + labels()
        + generic(&[1, 2, 3])
        + moves(Some("text".to_owned())).len()
        + size()
        + begins_with_a_block(1)
}

fn chains(one: Option<usize>, other: usize) -> usize {
    let Some(first) = one.filter(|&one| one > 0 && one < 10) else { return 0 };
    if let Some(two) = one
        && two == other
        && !(two < 1 || two > 5)
    {
        first + two
    } else {
        0
    }
}

fn places() -> usize {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    *counts.entry("a").or_default() += 1 + 1;
    let mut list = [0usize; 2 + 2];
    list[1 + 1] -= 0;
    list[3] |= 1 << 1;
    counts["a"] + list[3]
}

fn arms(number: i32) -> usize {
    match number {
        i32::MIN..=-1 => 0,
        n @ (1 | 2) if n == -1 + 2 => 1,
        n if n % 2 == 1 => match n {
            7 => 2,
            _ => 3,
        },
        _ => 4,
    }
}

fn temporaries(cell: &RefCell<Vec<usize>>) -> usize {
    let last = cell.borrow().len() - 1;
    let text = if !cell.borrow().is_empty() { &format!("{}", last + 1) } else { "" };
    cell.borrow()[last] + text.len()
}

fn closures() -> usize {
    let add = |a: usize| move |b: usize| a + b;
    let all: Vec<usize> = (0..3).map(add(1)).filter(|n| n % 2 == 0).collect();
    all.iter().fold(0, |a, b| a + b)
}

fn labels() -> usize {
    let mut rounds = 0;
    let found = 'outer: loop {
        rounds += 1;
        for n in 0.. {
            if n * n > 50 {
                break 'outer n;
            }
        }
    };
    found - rounds
}

fn generic<T: Copy + std::ops::Add<Output = T> + PartialOrd>(parts: &[T]) -> usize
where
    usize: PartialEq<usize>,
{
    let Some((&first, rest)) = parts.split_first() else { return 0 };
    let sum = rest.iter().fold(first, |sum, &part| sum + part);
    if sum > first { parts.len() } else { 0 }
}

fn moves(text: Option<String>) -> String {
    match text {
        Some(text) if text.len() > 10 => text + "!",
        Some(text) => text,
        _ => String::new(),
    }
}

const fn size() -> usize {
    const HALF: usize = 8 / 2;
    HALF + 1
}

fn begins_with_a_block(number: usize) -> usize {
    let more = match number {
        1 => 1,
        _ => 0,
    } + number;
    more - if number > 1 { 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_to_something() {
        assert_eq!(awkward(), 6 + 4 + 2 + 3 + 2 + 7 + 3 + 4 + 5 + 2);
    }
}
