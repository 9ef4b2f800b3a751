//! Words of a few bits for the parts of a state: two macros, and what they need.
//!
//! A search holds millions of states and makes several new ones out of each, so a part of a
//! state is one small integer, with a typed getter and setter for every field in it.

/// What a field of a word can hold.
pub(crate) trait Bits: Copy {
    /// How many bits it takes.
    const WIDTH: u32;
    /// The value of those bits.
    fn of_bits(bits: u16) -> Self;
    /// The bits of the value.
    fn to_bits(self) -> u16;
}

impl Bits for bool {
    const WIDTH: u32 = 1;

    fn of_bits(bits: u16) -> bool {
        bits != 0
    }

    fn to_bits(self) -> u16 {
        u16::from(self)
    }
}

/// A number below four: an index, or what is left of a budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Few(u8);

impl Few {
    /// # Panics
    ///
    /// If the number does not fit two bits: a setting was not checked.
    pub fn new(number: usize) -> Few {
        assert!(number < 4, "{number} does not fit two bits");
        // OK because it is below four.
        Few(number as u8)
    }

    /// The number.
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

impl Bits for Few {
    const WIDTH: u32 = 2;

    fn of_bits(bits: u16) -> Few {
        Few(bits as u8)
    }

    fn to_bits(self) -> u16 {
        u16::from(self.0)
    }
}

/// An enumeration without data that can be a field of a word.
macro_rules! choices {
    ($(#[$meta:meta])* $name:ident: $width:literal { $($(#[$doc:meta])* $variant:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// All of them, in order.
            pub const ALL: &[$name] = &[$($name::$variant,)+];
        }

        impl $crate::bits::Bits for $name {
            const WIDTH: u32 = {
                assert!($name::ALL.len() <= 1 << $width, "too many for the width");
                $width
            };

            fn of_bits(bits: u16) -> $name {
                // OK because only `to_bits` has written them.
                $name::ALL[usize::from(bits)]
            }

            fn to_bits(self) -> u16 {
                self as u16
            }
        }
    };
}

/// A word of typed fields, from the lowest bit on.
macro_rules! word {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident, $set:ident: $type:ty = $at:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(u16);

        impl $name {
            /// How many bits it takes: its fields stand side by side, none on another.
            pub(crate) const BITS: u32 = {
                let mut end = 0;
                $(
                    assert!($at >= end, "a field begins in the one before");
                    end = $at + <$type as $crate::bits::Bits>::WIDTH;
                )+
                assert!(end <= 16, "the fields do not fit the word");
                end
            };

            /// The bits as they are kept.
            pub(crate) fn bits(self) -> u16 {
                self.0
            }

            /// A word out of the bits of one.
            pub(crate) fn of(bits: u16) -> $name {
                $name(bits)
            }

            $(
                $(#[$doc])*
                #[inline]
                pub fn $field(self) -> $type {
                    const MASK: u16 = (1 << <$type as $crate::bits::Bits>::WIDTH) - 1;
                    <$type as $crate::bits::Bits>::of_bits((self.0 >> $at) & MASK)
                }

                #[inline]
                pub(crate) fn $set(&mut self, value: $type) {
                    const MASK: u16 = (1 << <$type as $crate::bits::Bits>::WIDTH) - 1;
                    let bits = <$type as $crate::bits::Bits>::to_bits(value);
                    self.0 = (self.0 & !(MASK << $at)) | (bits << $at);
                }
            )+
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &self.$field()))+
                    .finish()
            }
        }
    };
}

pub(crate) use {choices, word};

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macros make what is public elsewhere")]
mod tests {
    use super::*;

    choices! {
        /// Of three.
        Colour: 2 { Red, Green, Blue, }
    }

    word! {
        /// Of all kinds.
        Mixed {
            /// A flag.
            flag, set_flag: bool = 0;
            /// A choice.
            colour, set_colour: Colour = 1;
            /// A number.
            few, set_few: Few = 14;
        }
    }

    #[test]
    fn a_field_is_read_as_it_was_written_and_no_other_changes() {
        let mut mixed = Mixed::default();
        assert_eq!((mixed.flag(), mixed.colour(), mixed.few()), (false, Colour::Red, Few(0)));
        mixed.set_colour(Colour::Blue);
        mixed.set_few(Few::new(3));
        mixed.set_flag(true);
        mixed.set_colour(Colour::Green);
        assert_eq!((mixed.flag(), mixed.colour(), mixed.few()), (true, Colour::Green, Few(3)));
        assert_eq!(Mixed::of(mixed.bits()), mixed);
        assert_eq!(Mixed::BITS, 16);
        assert_eq!(format!("{mixed:?}"), "Mixed { flag: true, colour: Green, few: Few(3) }");
    }
}
