//! A list in blocks of one size: it grows without being copied, and leaves no holes behind.

/// Values in a block.
const BLOCK: usize = 1 << 10;

/// A list that only grows.
#[derive(Default)]
pub(super) struct Arena<T> {
    blocks: Vec<Box<[T]>>,
    len: usize,
}

impl<T: Copy + Default> Arena<T> {
    /// So many values, all of them the default.
    pub(super) fn of_defaults(len: usize) -> Arena<T> {
        let blocks = (0..len.div_ceil(BLOCK)).map(|_| block()).collect();
        Arena { blocks, len }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// # Panics
    ///
    /// If there are not so many.
    #[inline]
    pub(super) fn get(&self, at: usize) -> T {
        self.blocks[at / BLOCK][at % BLOCK]
    }

    /// # Panics
    ///
    /// If there are not so many.
    #[inline]
    pub(super) fn set(&mut self, at: usize, value: T) {
        self.blocks[at / BLOCK][at % BLOCK] = value;
    }

    #[inline]
    pub(super) fn push(&mut self, value: T) {
        if self.len == self.blocks.len() * BLOCK {
            self.blocks.push(block());
        }
        self.len += 1;
        self.set(self.len - 1, value);
    }

    /// The bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.len() * (BLOCK * size_of::<T>() + size_of::<Box<[T]>>())
    }
}

fn block<T: Copy + Default>() -> Box<[T]> {
    vec![T::default(); BLOCK].into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_where_they_were_put() {
        let mut arena = Arena::default();
        for n in 0..3000_u32 {
            arena.push(n);
            assert_eq!(arena.len(), n as usize + 1);
        }
        arena.set(1500, 7);
        for n in 0..3000 {
            assert_eq!(arena.get(n as usize), if n == 1500 { 7 } else { n });
        }
        assert_eq!(arena.bytes(), 3 * (1024 * 4 + 16));
        let zeros: Arena<u32> = Arena::of_defaults(1025);
        assert_eq!((zeros.len(), zeros.get(1024), zeros.blocks.len()), (1025, 0, 2));
    }
}
