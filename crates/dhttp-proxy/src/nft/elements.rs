//! Elements of the sets and maps of an nftables table, added and deleted by system calls alone.
//!
//! The kernel's interface is `linux/netfilter/nf_tables.h`: a batch over netlink, which is applied atomically. A batch takes the
//! kernel milliseconds, however many changes it has, so they are collected until [`Elements::commit`]. Tables and chains are
//! installed once, as text ([`super`]).

use std::collections::BTreeMap;
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
    pending: Vec<Change>,
    /// Message that deletes an element: on Linux 6.3 and later one that does not fail if there is none.
    deletion: u16,
}

/// An element, as the kernel compares it: numbers in network byte order, and, in a concatenation, each part padded to four
/// bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// The name of the set or map.
    pub set: String,
    /// Key of the element.
    pub key: Vec<u8>,
    /// Its value in a map.
    pub value: Option<Vec<u8>>,
    /// Time after which the kernel removes it.
    pub lifetime: Option<Duration>,
}

/// A change of an element.
#[derive(Clone, Debug)]
enum Change {
    Add(Element),
    Delete(Element),
}

const NETLINK_NETFILTER: i32 = 12;
const NLMSG_ERROR: u16 = 2;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u16 = 10;
const NEW_ELEMENT: u16 = SUBSYSTEM << 8 | 12;
const DELETE_ELEMENT: u16 = SUBSYSTEM << 8 | 14;
const DESTROY_ELEMENT: u16 = SUBSYSTEM << 8 | 30;
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;
const NESTED: u16 = 0x8000;

/// Maximum number of changes in a batch: the socket holds the kernel's errors for all of them.
const MAX_CHANGES: usize = 128;
/// Times that a batch is sent. Older kernels reject a deletion of what is gone, and the whole batch with it, which takes them
/// ten milliseconds; more elements may expire meanwhile.
const MAX_ATTEMPTS: usize = 5;

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
        let socket = open().map_err(RulesError::Change)?;
        Ok(Self { socket, family, table, sequence: 0, pending: Vec::new(), deletion: DESTROY_ELEMENT })
    }

    /// Adds an element with the next commit; if it already exists, its lifetime is restarted.
    pub fn add(&mut self, element: Element) {
        if self.deletion == DESTROY_ELEMENT {
            self.delete(element.clone());
        }
        self.pending.push(Change::Add(element));
    }

    /// Deletes an element, if it exists, with the next commit.
    pub fn delete(&mut self, element: Element) {
        self.pending.push(Change::Delete(element.without_data()));
    }

    /// Applies all changes, in their order.
    ///
    /// # Errors
    /// The kernel's last error. The changes that it did not reject are applied.
    pub fn commit(&mut self) -> Result<(), RulesError> {
        let mut pending = std::mem::take(&mut self.pending);
        let mut result = Ok(());
        while !pending.is_empty() {
            let rest = pending.split_off(pending.len().min(MAX_CHANGES));
            result = self.apply(pending).and(result);
            pending = rest;
        }
        result.map_err(RulesError::Change)
    }

    /// Sends a batch until nothing of it is rejected. An error for one change prevents all of them.
    fn apply(&mut self, mut changes: Vec<Change>) -> io::Result<()> {
        let mut result = Ok(());
        for _ in 0..MAX_ATTEMPTS {
            let deletion = self.deletion;
            let rejected = self.send_batch(&changes)?;
            if rejected.is_empty() {
                return result;
            }
            let mut accepted = Vec::with_capacity(changes.len() + rejected.len());
            for (index, change) in changes.into_iter().enumerate() {
                match (change, rejected.get(&index).copied()) {
                    (change, None) => accepted.push(change),
                    (Change::Add(element), Some(libc::EEXIST)) => {
                        let existing = element.clone().without_data();
                        accepted.extend([Change::Delete(existing), Change::Add(element)]);
                    }
                    // The kernel does not know the message.
                    (change @ Change::Delete(_), Some(libc::EINVAL)) if deletion == DESTROY_ELEMENT => {
                        self.deletion = DELETE_ELEMENT;
                        accepted.push(change);
                    }
                    (Change::Delete(_), Some(libc::ENOENT)) => {}
                    (_, Some(code)) => result = Err(io::Error::from_raw_os_error(code)),
                }
            }
            changes = accepted;
        }
        result.and(Err(io::ErrorKind::ResourceBusy.into()))
    }

    /// Sends a batch; returns the errors by the index of the change. Without any the batch is applied, else nothing of it.
    fn send_batch(&mut self, changes: &[Change]) -> io::Result<BTreeMap<usize, i32>> {
        let mut errors = BTreeMap::new();
        let Some(last) = changes.len().checked_sub(1) else { return Ok(errors) };
        // The begin has the first number, each change the next: results have the numbers of their messages.
        let begin = self.sequence.wrapping_add(1);
        self.sequence = begin.wrapping_add(u32::try_from(changes.len()).unwrap_or(u32::MAX));
        (&self.socket).write_all(&self.batch(begin, changes))?;
        let mut buffer = [0; 8_192];
        loop {
            let length = (&self.socket).read(&mut buffer)?;
            let Some((sequence, code)) = reported(buffer.get(..length).unwrap_or_default()) else { continue };
            let number = usize::try_from(sequence.wrapping_sub(begin)).unwrap_or(usize::MAX);
            match number.checked_sub(1) {
                None if code == 0 => {}
                None => return Err(io::Error::from_raw_os_error(-code)),
                Some(index) if index > last => {}
                Some(index) => {
                    if code != 0 {
                        errors.insert(index, -code);
                    }
                    if index == last {
                        return Ok(errors);
                    }
                }
            }
        }
    }

    /// Encodes a batch. The kernel reports every error, and with [`ACKNOWLEDGE`] a success, in the order of the changes.
    fn batch(&self, begin: u32, changes: &[Change]) -> Vec<u8> {
        // The batch messages themselves belong to no family.
        let family = match self.family {
            Family::Ip => 2,
            Family::Ip6 => 10,
        };
        let mut batch = Vec::with_capacity(256 * (changes.len() + 1));
        message(&mut batch, (BATCH_BEGIN, REQUEST, begin), (0, SUBSYSTEM), |_| {});
        let mut sequence = begin;
        for (left, change) in (0..changes.len()).rev().zip(changes) {
            sequence = sequence.wrapping_add(1);
            let acknowledge = if left == 0 { ACKNOWLEDGE } else { 0 };
            let (kind, flags, element) = match change {
                Change::Add(element) => (NEW_ELEMENT, CREATE | EXCLUSIVE, element),
                Change::Delete(element) => (self.deletion, 0, element),
            };
            message(&mut batch, (kind, REQUEST | flags | acknowledge, sequence), (family, 0), |out| {
                write_element(out, self.table, element);
            });
        }
        message(&mut batch, (BATCH_END, REQUEST, sequence), (0, SUBSYSTEM), |_| {});
        batch
    }
}

impl Element {
    /// Returns what identifies it.
    fn without_data(self) -> Self {
        Self { value: None, lifetime: None, ..self }
    }
}

/// Returns the number of a message, and the kernel's result for it: 0 or a negative error.
fn reported(response: &[u8]) -> Option<(u32, i32)> {
    let field = |at: usize| response.get(at..at + 4)?.try_into().ok();
    let kind = u16::from_ne_bytes(response.get(4..6)?.try_into().ok()?);
    let sequence = u32::from_ne_bytes(field(8)?);
    (kind == NLMSG_ERROR).then(|| Some((sequence, i32::from_ne_bytes(field(16)?))))?
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

fn write_element(out: &mut Vec<u8>, table: &str, element: &Element) {
    // NFTA_SET_ELEM_LIST_TABLE, _SET, _ELEMENTS, then NFTA_LIST_ELEM.
    attribute(out, 1, |out| out.extend([table.as_bytes(), &[0]].concat()));
    attribute(out, 2, |out| out.extend([element.set.as_bytes(), &[0]].concat()));
    attribute(out, 3 | NESTED, |out| {
        attribute(out, 1 | NESTED, |out| {
            // NFTA_SET_ELEM_KEY, _DATA, _TIMEOUT; in each NFTA_DATA_VALUE.
            attribute(out, 1 | NESTED, |out| attribute(out, 1, |out| out.extend(&element.key)));
            if let Some(value) = &element.value {
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
