//! Files whose bytes are read as if they lay in memory, and numbers that lie in a file because they are many.
//!
//! The system brings in what is touched and lets go of what it needs the room for, so that none of it counts as memory of this
//! process alone.
//!
//! `unsafe` because mapped bytes change, or end, when somebody changes the file meanwhile. Shards are written once, under a temporary
//! name, and renamed; a temporary file of numbers has no name at all. Neither is ever changed in place by this program.
#![allow(unsafe_code)]

use memmap2::{Mmap, MmapMut};
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;

/// Numbers above which a list of them lies in a temporary file: 4 MiB of them.
const MANY: usize = 1 << 20;

/// The bytes of a file.
#[derive(Debug)]
pub(crate) struct Mapped(Mmap);

impl Mapped {
    /// Those of the file `path`.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        // SAFETY: see above.
        unsafe { Mmap::map(&file) }.map(Self)
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// A list of numbers of fixed length: in memory, or in a temporary file where there are many.
#[derive(Debug)]
pub(crate) enum Numbers {
    Few(Vec<u32>),
    Many(MmapMut),
}

impl Numbers {
    /// So many zeros.
    pub(crate) fn zeros(n: usize) -> Self {
        // Where no file can be had, memory has to do.
        if n > MANY { Self::in_file(n).unwrap_or_else(|_| Self::Few(vec![0; n])) } else { Self::Few(vec![0; n]) }
    }

    fn in_file(n: usize) -> io::Result<Self> {
        let file = tempfile::tempfile()?;
        file.set_len(4 * n as u64)?;
        // A disk that is full has to say so now, not when a page is written.
        #[cfg(target_os = "linux")]
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 4 * n as u64)?;
        // SAFETY: see above.
        unsafe { MmapMut::map_mut(&file) }.map(Self::Many)
    }
}

impl From<Vec<u32>> for Numbers {
    fn from(numbers: Vec<u32>) -> Self {
        if numbers.len() <= MANY {
            return Self::Few(numbers);
        }
        let mut moved = Self::zeros(numbers.len());
        moved.copy_from_slice(&numbers);
        moved
    }
}

impl Deref for Numbers {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        match self {
            Self::Few(numbers) => numbers,
            // SAFETY: any bytes are numbers. A map begins at a page, so that nothing is before the first.
            Self::Many(map) => unsafe { map.align_to().1 },
        }
    }
}

impl DerefMut for Numbers {
    fn deref_mut(&mut self) -> &mut [u32] {
        match self {
            Self::Few(numbers) => numbers,
            // SAFETY: as above.
            Self::Many(map) => unsafe { map.align_to_mut().1 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_numbers_lie_in_a_file_and_few_in_memory() {
        for (n, is_many) in [(MANY, false), (MANY + 1, true)] {
            let mut numbers = Numbers::zeros(n);
            assert_eq!(matches!(numbers, Numbers::Many(_)), is_many);
            assert_eq!((numbers.len(), numbers[n - 1]), (n, 0));
            numbers[n - 1] = 7;
            numbers[0] = 5;
            let again = Numbers::from(numbers.to_vec());
            assert_eq!(again[..], numbers[..]);
        }
    }
}
