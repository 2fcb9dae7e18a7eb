//! Files of the page, read part by part.

use std::io::{self, Read};

/// A file that the page was given, by the number that its worker knows.
#[derive(Debug)]
pub struct PageFile {
    file: u32,
}

impl PageFile {
    /// The file of this number, from its beginning: the worker counts the bytes that were read.
    pub const fn new(file: u32) -> Self {
        Self { file }
    }
}

#[cfg(target_arch = "wasm32")]
mod import {
    #[link(wasm_import_module = "page")]
    unsafe extern "C" {
        /// Reads the next bytes of a file into memory. Returns their number; negative if the browser cannot read it.
        pub(super) fn read(file: u32, into: *mut u8, length: usize) -> i32;
    }
}

#[cfg(target_arch = "wasm32")]
fn read(file: u32, into: &mut [u8]) -> i32 {
    // SAFETY: the worker writes at most this number of bytes, from there on.
    unsafe { import::read(file, into.as_mut_ptr(), into.len()) }
}

/// Elsewhere there is no page.
#[cfg(not(target_arch = "wasm32"))]
fn read(_file: u32, _into: &mut [u8]) -> i32 {
    -1
}

impl Read for PageFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        usize::try_from(read(self.file, into))
            .map_err(|_| io::Error::other("the browser cannot read the file; choose it again"))
    }
}
