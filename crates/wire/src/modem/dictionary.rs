//! Dictionary of V.42 bis: a tree of characters with a number for each node; the oldest leaf is replaced by a new
//! string (ITU-T V.42 bis, section 6).

use std::collections::BTreeMap;

/// The first numbers are commands, followed by one for each character, then by those of strings.
pub(super) const COMMANDS: u16 = 3;
const FIRST_STRING: u16 = COMMANDS + 256;

/// Strings by number.
#[derive(Clone, Debug)]
pub(super) struct Strings {
    nodes: Vec<Node>,
    children: BTreeMap<(u16, u8), u16>,
    /// Number of the next string; always free.
    next: u16,
}

/// A string: a prefix and a character.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    parent: u16,
    character: u8,
    children: u16,
    is_used: bool,
}

impl Strings {
    /// Creates a dictionary with the given number of codewords, at least one of them for a string.
    pub(super) fn new(numbers: u16) -> Self {
        let nodes = vec![Node::default(); usize::from(numbers.max(FIRST_STRING + 2))];
        Self { nodes, children: BTreeMap::new(), next: FIRST_STRING }
    }

    /// Returns the number of a string of one character.
    pub(super) fn character(character: u8) -> u16 {
        COMMANDS + u16::from(character)
    }

    /// Returns the number of a string extended by a character, if such a string exists.
    pub(super) fn find(&self, string: u16, character: u8) -> Option<u16> {
        self.children.get(&(string, character)).copied()
    }

    /// Adds a string extended by a character, and frees a number for the next.
    pub(super) fn add(&mut self, string: u16, character: u8) -> u16 {
        let number = self.next;
        self.nodes[usize::from(number)] = Node { parent: string, character, children: 0, is_used: true };
        self.nodes[usize::from(string)].children += 1;
        self.children.insert((string, character), number);
        self.free_next_number();
        number
    }

    /// Finds the next free number, or frees that of a string that no other extends.
    fn free_next_number(&mut self) {
        loop {
            self.next =
                if usize::from(self.next) + 1 < self.nodes.len() { self.next + 1 } else { FIRST_STRING };
            let Node { parent, character, children, is_used } = self.nodes[usize::from(self.next)];
            if !is_used {
                return;
            }
            if children == 0 {
                self.children.remove(&(parent, character));
                self.nodes[usize::from(parent)].children -= 1;
                self.nodes[usize::from(self.next)] = Node::default();
                return;
            }
        }
    }

    /// Returns the characters of a string; `None` for an unknown number.
    #[cfg(test)]
    pub(super) fn characters(&self, mut number: u16) -> Option<Vec<u8>> {
        let mut characters = Vec::new();
        while number >= FIRST_STRING {
            let node = self.nodes.get(usize::from(number)).filter(|node| node.is_used)?;
            characters.push(node.character);
            number = node.parent;
        }
        characters.push(u8::try_from(number.checked_sub(COMMANDS)?).ok()?);
        characters.reverse();
        Some(characters)
    }
}
