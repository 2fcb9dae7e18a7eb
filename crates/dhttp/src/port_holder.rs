//! Check that no other process serves at a port, before a service binds it.
//!
//! A server's threads share its port (`SO_REUSEPORT`), and the kernel would let a second service of the same user join them: each
//! would then get some of the requests. The check binds the UDP port without sharing it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

/// Checks a port; to be called before the files of other processes become unreadable.
///
/// # Errors
/// A sentence with the process that uses it, where the kernel shows it.
pub fn check(listen: SocketAddr) -> Result<(), String> {
    match crate::socket::udp(listen, false) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(format!(
            "cannot listen at {listen}: {} uses the port; stop it, or choose another address with --listen",
            holder(listen.port()).unwrap_or_else(|| "another process".to_owned())
        )),
        // Anything else is reported when the server binds the port.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Returns the name and number of a process that has a UDP socket at this port, where its files are visible.
fn holder(port: u16) -> Option<String> {
    let tables = ["/proc/self/net/udp", "/proc/self/net/udp6"]
        .map(|path| fs::read_to_string(path).unwrap_or_default());
    let inode =
        tables.iter().flat_map(|table| table.lines().skip(1)).find_map(|line| inode_of(line, port))?;
    let wanted = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let is_holder = |process: &Path| {
        let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        descriptors
            .flat_map(|one| fs::read_link(one.path()))
            .any(|target| target.as_os_str() == wanted.as_str())
    };
    // Not the links `self` and `thread-self`.
    let mut numbered =
        processes.filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path())));
    let (number, process) = numbered.find(|(_, process)| is_holder(process))?;
    let name = fs::read_to_string(process.join("comm")).ok()?;
    Some(format!("{} (process {number})", name.trim_end()))
}

/// Returns the inode in a line of the kernel's table of sockets, if the local port is this one (`proc_net_udp(5)`).
fn inode_of(line: &str, port: u16) -> Option<u64> {
    let mut columns = line.split_ascii_whitespace();
    let local = columns.nth(1)?.rsplit(':').next()?;
    let is_at_port = u16::from_str_radix(local, 16) == Ok(port);
    columns.nth(7).filter(|_| is_at_port)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_used_port_is_refused_with_the_name_of_its_process() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let sentence = check(address).unwrap_err();
        assert!(sentence.contains(&format!("(process {})", std::process::id())), "{sentence}");
        drop(socket);
        assert!(check(address).is_ok());
    }

    #[test]
    fn regress_the_port_of_another_service_is_refused() {
        let shared = crate::socket::udp("127.0.0.1:0".parse().unwrap(), true).unwrap();
        assert!(check(shared.local_addr().unwrap()).is_err(), "though its owner shares it with its threads");
    }
}
