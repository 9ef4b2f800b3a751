//! Small functions, each with mutants of a known fate.

// A switch leaves parentheses and unreachable lines behind, which must not decide anything.
#![deny(warnings)]

mod awkward;
mod names;

pub use awkward::awkward;
pub use names::Names;

/// Every mutant is caught.
pub fn is_adult(age: u8) -> bool {
    age >= 18
}

/// No test looks at the bound itself.
pub fn is_small(number: u32) -> bool {
    number < 10
}

/// No test comes by.
pub fn unused(number: u32) -> u32 {
    number + 1
}

/// Counts up to a number. With another operator it never ends.
pub fn count_to(number: u32) -> u32 {
    let mut count = 0;
    while count < number {
        count += 1;
    }
    count
}

/// Waits for somebody who comes; without the negation, for somebody who does not.
pub fn wait(come: bool) {
    let (send, receive) = std::sync::mpsc::channel();
    let held = if !come { Some(send.clone()) } else { None };
    drop(send);
    let nobody: Result<(), _> = receive.recv();
    assert!(nobody.is_err());
    drop(held);
}

/// A shade of a number, told by a match.
pub fn shade(number: u8) -> &'static str {
    match number {
        0 => "black",
        255 => "white",
        other if other > 127 => "light",
        _ => "dark",
    }
}

/// Whose length no test can tell from another: it is declared.
pub fn room(length: usize) -> Vec<u8> {
    Vec::with_capacity(length * 2)
}

/// Not for this system.
#[cfg(windows)]
pub fn elsewhere(number: u32) -> u32 {
    number + 1
}

/// Options with a base.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub loud: bool,
    pub strict: bool,
}

/// The usual ones, but strict.
pub fn strict() -> Options {
    Options { strict: true, ..Options::default() }
}

/// The compiler refuses all that could stand here.
pub struct NoDefault(pub u8);

pub fn no_default() -> NoDefault {
    NoDefault(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adults_are_eighteen() {
        assert!(is_adult(18));
        assert!(!is_adult(17));
        assert!(is_adult(19));
    }

    #[test]
    fn three_is_small_and_thirty_is_not() {
        assert!(is_small(3));
        assert!(!is_small(30));
    }

    #[test]
    fn counts() {
        assert_eq!(count_to(3), 3);
    }

    #[test]
    fn waits() {
        wait(true);
    }

    #[test]
    fn shades() {
        assert_eq!([0, 1, 128, 255].map(shade), ["black", "dark", "light", "white"]);
        assert_eq!(shade(127), "dark");
    }

    #[test]
    fn there_is_room() {
        assert!(room(3).is_empty());
    }

    #[test]
    fn strict_options_are_not_loud() {
        assert_eq!(strict(), Options { loud: false, strict: true });
    }

    #[test]
    fn it_has_no_default() {
        assert_eq!(no_default().0, 1);
    }
}
