//! Allocations per response in a datagram: none (`docs/dhttp-server.md`).
//!
//! Allocations of the whole process are counted, so this binary has only one test. Not a timing.

extern crate roundtrip_dhttp as dhttp;

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dhttp::{Files, Server, ServerConfig};

/// The system's allocator, with a count of its allocations.
struct CountingAllocator;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is the system allocator's, which upholds the contract; the counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

#[test]
fn a_datagram_gets_its_response_without_allocation() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("small.txt"), [b's'; 960]).unwrap();
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let files = Files::below(directory.path()).unwrap();
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config, files, None).unwrap();
    let client = Client::of(&server);
    let token = client.send_request(&request(0, &format!("DHTTP-Fill: {}", "0".repeat(340))));
    let token = token.lines().find(|line| line.starts_with("DHTTP-Token: ")).expect("who is new gets one");
    // After these the file has been read, and reused buffers have their final size.
    let known: Vec<_> = (1..=600).map(|id| request(id, token)).collect();
    let mut buffer = [0; 2_048];
    let mut allocations_of = |requests: &[Vec<u8>]| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for request in requests {
            client.0.send(request).unwrap();
            assert!(client.0.recv(&mut buffer).unwrap() > 960, "it is answered in one datagram");
        }
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    let requested: Vec<u64> = known.chunks(50).map(&mut allocations_of).collect();
    // Once a second the server checks the date and the file, which some of these groups of 50 may include.
    let quiet = requested.iter().filter(|requested| **requested == 0).count();
    assert!(quiet >= requested.len() / 2, "fifties of datagrams asked for memory so often: {requested:?}");
}

struct Client(UdpSocket);

impl Client {
    fn of(server: &Server<Files>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server.address()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Self(socket)
    }

    fn send_request(&self, request: &[u8]) -> String {
        let mut buffer = [0; 2_048];
        self.0.send(request).unwrap();
        let length = self.0.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }
}

/// Creates a request with this id, and 50,000 as the client's port.
fn request(id: u64, field: &str) -> Vec<u8> {
    let mut request = id.to_be_bytes().to_vec();
    request.extend_from_slice(b"\xc3\x50\0");
    let head = format!("GET /small.txt HTTP/1.1\r\nHost: 127.0.0.1\r\n{field}\r\n\r\n");
    request.extend_from_slice(head.as_bytes());
    request
}
