//! A disk store that was damaged while closed: it is set aside, a new one is created, and no wrong response is served.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use dhttp::{Server, ServerConfig};
use roundtrip_dhttp_proxy::{Cache, CacheConfig, Origin};
use test_fixture::{TestDirectory, TestServer, exchange};
use tokio::runtime::Runtime;

const PATHS: usize = 40;

fn body(path: usize) -> Vec<u8> {
    format!("{path:04}").into_bytes().repeat(2_500)
}

/// An origin whose responses may be stored for an hour.
fn origin() -> SocketAddr {
    let server = TestServer::start(|head, _, stream| {
        let path = head.split(' ').nth(1).and_then(|path| path[1..].parse().ok()).unwrap_or(0);
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: 10000\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(&[head.as_bytes(), &body(path)].concat());
    });
    server.address
}

fn cache(runtime: &Runtime, origin: SocketAddr, file: &Path) -> std::io::Result<Cache<Origin>> {
    let _inside = runtime.enter();
    let origin = Origin::new(&format!("http://{origin}/").parse().unwrap()).unwrap();
    let disk = Some((file.to_owned(), 64 << 20));
    Cache::new(origin, CacheConfig { memory: 0, disk, ..CacheConfig::default() }, runtime.handle().clone())
}

fn get(server: SocketAddr, path: usize) -> Vec<u8> {
    exchange(server, "GET", &format!("/{path}"), "").1
}

fn serve(cache: Cache<Origin>) -> Server<Cache<Origin>> {
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    Server::start("127.0.0.1:0".parse().unwrap(), config, cache, None).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "what is waited for is another thread's writing")]
fn pause(milliseconds: u64) {
    std::thread::sleep(std::time::Duration::from_millis(milliseconds));
}

#[test]
fn a_damaged_store_is_set_aside_and_no_wrong_response_is_served() {
    let directory = TestDirectory::new("damaged");
    let (runtime, origin) = (Runtime::new().unwrap(), origin());
    let whole = directory.join("whole");
    let server = serve(cache(&runtime, origin, &whole).unwrap());
    (0..PATHS).for_each(|path| assert_eq!(get(server.address(), path), body(path)));
    // Until the disk's thread has written all of it.
    pause(1_000);
    server.stop();
    pause(500);
    let bytes = std::fs::read(&whole).unwrap();
    assert!(bytes.len() > PATHS * 10_000);
    let (mut random, mut set_aside) = (0x9e37_79b9_7f4a_7c15_u64, 0);
    for number in 0..24 {
        let mut damaged = bytes.clone();
        match number {
            0 => damaged.truncate(damaged.len() / 2),
            1 => damaged.truncate(100),
            2 => damaged.fill(0xff),
            3 => damaged = b"not a store at all".to_vec(),
            _ => {
                for _ in 0..8 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    // Half of them in the first pages, which hold the store's own tables.
                    let reach = if number % 2 == 0 { 16_384 } else { damaged.len() };
                    let at = usize::try_from(random >> 33).unwrap() % reach;
                    damaged[at] ^= u8::try_from(random >> 25 & 0xff).unwrap() | 1;
                }
            }
        }
        let file = directory.join(format!("damaged-{number}"));
        std::fs::write(&file, &damaged).unwrap();
        if matches!(number, 2 | 3) {
            // It may be another program's file, and is left unchanged.
            let error = cache(&runtime, origin, &file).unwrap_err().to_string();
            assert!(error.contains("it is not a store"), "{error}");
            assert_eq!(std::fs::read(&file).unwrap(), damaged);
            continue;
        }
        let server =
            serve(cache(&runtime, origin, &file).unwrap_or_else(|error| panic!("{number}: {error}")));
        for path in 0..PATHS {
            assert!(get(server.address(), path) == body(path), "{number}: wrong bytes of {path}");
        }
        set_aside += usize::from(
            file.with_extension("damaged").exists()
                || directory.join(format!("damaged-{number}.damaged")).exists(),
        );
    }
    assert!(set_aside >= 2, "those that were cut off at least: {set_aside}");
}
