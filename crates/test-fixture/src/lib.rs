//! Environments of tests. Each is removed when it is dropped, also after a panic, and no two tests of a process share one.
//!
//! | item | what a test gets |
//! | --- | --- |
//! | [`TestDirectory`] | an empty directory of its own |
//! | [`KilledOnDrop`] | a program that does not outlive a failed test |
//! | [`TestServer`], [`exchange`] | an HTTP/1 server of a function, and a client of one request |
//! | [`has_laboratory`] | whether network namespaces can be created, with a skip in the log if not |
//!
//! For tests only, as `skip`, which reports the tests that cannot run.
//!
//! ```
//! use roundtrip_test_fixture::TestDirectory;
//!
//! let directory = TestDirectory::new("example");
//! std::fs::write(directory.join("page.html"), "<p>").unwrap();
//! assert_eq!(directory.names(), ["page.html"]);
//! ```

mod directory;
mod program;
mod server;

pub use directory::TestDirectory;
pub use program::KilledOnDrop;
pub use server::{TestServer, exchange, read_head};

/// Whether network namespaces can be created here; reports a skip if not.
///
/// # Panics
/// If not, and `ROUNDTRIP_REQUIRE_KERNEL` is 1, as in CI.
pub fn has_laboratory() -> bool {
    let Err(missing) = linux::available() else { return true };
    skip::refused(&missing.to_string());
    false
}
