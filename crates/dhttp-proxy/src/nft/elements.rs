//! Elements of the sets and maps of an nftables table, added and deleted by system calls alone.
//!
//! The kernel's interface is `linux/netfilter/nf_tables.h`: a batch over netlink, which is applied atomically. Tables and
//! chains are installed once, as text ([`super`]).

use std::io::{self, Read, Write};
use std::time::Duration as Wait;

use socket2::{Domain, Protocol, Socket, Type};
use wire::Duration;

use super::{Family, RulesError};

/// Netlink socket for the elements of one table.
#[derive(Debug)]
pub struct Elements {
    socket: Socket,
    family: Family,
    table: &'static str,
    sequence: u32,
}

/// An element, as the kernel compares it: numbers in network byte order, and, in a concatenation, each part padded to four
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The name of the set or map.
    pub set: &'a str,
    /// Key of the element.
    pub key: &'a [u8],
    /// Its value in a map.
    pub value: Option<&'a [u8]>,
    /// Time after which the kernel removes it.
    pub lifetime: Option<Duration>,
}

const NETLINK_NETFILTER: i32 = 12;
const NLMSG_ERROR: u16 = 2;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u16 = 10;
const NEW_ELEMENT: u16 = SUBSYSTEM << 8 | 12;
const DELETE_ELEMENT: u16 = SUBSYSTEM << 8 | 14;
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;
const NESTED: u16 = 0x8000;

impl Elements {
    /// Opens a socket for a table.
    ///
    /// # Errors
    /// If the kernel refuses such a socket.
    pub fn open(family: Family, table: &'static str) -> Result<Self, RulesError> {
        let protocol = Some(Protocol::from(NETLINK_NETFILTER));
        let open = || {
            let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, protocol)?;
            socket.set_read_timeout(Some(Wait::from_secs(1)))?;
            Ok(socket)
        };
        Ok(Self { socket: open().map_err(RulesError::Change)?, family, table, sequence: 0 })
    }

    /// Adds an element; if it already exists, its lifetime is restarted.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add(&mut self, element: &Element<'_>) -> Result<(), RulesError> {
        let added = self.change(NEW_ELEMENT, CREATE | EXCLUSIVE, element);
        match added {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
                self.delete(element)?;
                self.change(NEW_ELEMENT, CREATE, element)
            }
            result => result,
        }
        .map_err(RulesError::Change)
    }

    /// Deletes an element, if it exists.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn delete(&mut self, element: &Element<'_>) -> Result<(), RulesError> {
        let bare = Element { value: None, lifetime: None, ..*element };
        match self.change(DELETE_ELEMENT, 0, &bare) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            result => result.map_err(RulesError::Change),
        }
    }

    fn change(&mut self, kind: u16, flags: u16, element: &Element<'_>) -> io::Result<()> {
        let mut batch = Vec::with_capacity(512);
        self.sequence = self.sequence.wrapping_add(1);
        // All messages have the same number: a result for any of them applies to the whole batch.
        let expected = self.sequence;
        // The batch messages themselves belong to no family.
        let family = match self.family {
            Family::Ip => 2,
            Family::Ip6 => 10,
        };
        message(&mut batch, (BATCH_BEGIN, REQUEST, expected), (0, SUBSYSTEM), |_| {});
        message(&mut batch, (kind, REQUEST | ACKNOWLEDGE | flags, expected), (family, 0), |out| {
            write_element(out, self.table, element);
        });
        message(&mut batch, (BATCH_END, REQUEST, expected), (0, SUBSYSTEM), |_| {});
        (&self.socket).write_all(&batch)?;
        let mut buffer = [0; 8_192];
        loop {
            let length = (&self.socket).read(&mut buffer)?;
            match reported(buffer.get(..length).unwrap_or_default(), expected) {
                None => {}
                Some(0) => return Ok(()),
                Some(code) => return Err(io::Error::from_raw_os_error(-code)),
            }
        }
    }
}

/// Returns the kernel's result for the message with this number: 0 or a negative error. Results of others are old.
fn reported(response: &[u8], expected: u32) -> Option<i32> {
    let field = |at: usize| response.get(at..at + 4)?.try_into().ok();
    let kind = u16::from_ne_bytes(response.get(4..6)?.try_into().ok()?);
    let sequence = u32::from_ne_bytes(field(8)?);
    (kind == NLMSG_ERROR && sequence == expected).then(|| field(16).map(i32::from_ne_bytes))?
}

/// `struct nlmsghdr`, `struct nfgenmsg`, attributes.
fn message(
    out: &mut Vec<u8>,
    (kind, flags, sequence): (u16, u16, u32),
    (family, resource): (u8, u16),
    write: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    out.extend([0; 4]);
    out.extend(kind.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out.extend(sequence.to_ne_bytes());
    out.extend([0; 4]);
    out.extend([family, 0]);
    out.extend(resource.to_be_bytes());
    write(out);
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    if let Some(field) = out.get_mut(start..start + 4) {
        field.copy_from_slice(&length.to_ne_bytes());
    }
}

fn write_element(out: &mut Vec<u8>, table: &str, element: &Element<'_>) {
    // NFTA_SET_ELEM_LIST_TABLE, _SET, _ELEMENTS, then NFTA_LIST_ELEM.
    attribute(out, 1, |out| out.extend([table.as_bytes(), &[0]].concat()));
    attribute(out, 2, |out| out.extend([element.set.as_bytes(), &[0]].concat()));
    attribute(out, 3 | NESTED, |out| {
        attribute(out, 1 | NESTED, |out| {
            // NFTA_SET_ELEM_KEY, _DATA, _TIMEOUT; in each NFTA_DATA_VALUE.
            attribute(out, 1 | NESTED, |out| attribute(out, 1, |out| out.extend(element.key)));
            if let Some(value) = element.value {
                attribute(out, 2 | NESTED, |out| attribute(out, 1, |out| out.extend(value)));
            }
            if let Some(lifetime) = element.lifetime {
                let millis = lifetime.as_nanos() / 1_000_000;
                attribute(out, 4, |out| out.extend(millis.to_be_bytes()));
            }
        });
    });
}

/// `struct nlattr` and its payload, padded to four bytes.
fn attribute(out: &mut Vec<u8>, kind: u16, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; 2]);
    out.extend(kind.to_ne_bytes());
    write(out);
    let length = u16::try_from(out.len() - start).unwrap_or(u16::MAX);
    if let Some(field) = out.get_mut(start..start + 2) {
        field.copy_from_slice(&length.to_ne_bytes());
    }
    out.resize(out.len().next_multiple_of(4), 0);
}
