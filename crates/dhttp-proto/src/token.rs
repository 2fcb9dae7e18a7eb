//! Tokens: proof, without state on the server, that a client has received at its address before.
//!
//! A token holds the generation of its key, the second in which it was made, and a keyed hash. The hash covers both of
//! these, the client's address and the TCP port on which the client accepts connections. It is SipHash-2-4 with 64
//! bits: a guess succeeds once in 2^64. It includes the port, so that a token permits connections only to the port for
//! which it was issued. Not a secret of the client's: anyone on the path can read it, like all other traffic. Not in
//! the paper, whose server trusts every source address.

use core::net::SocketAddr;

use siphasher::sip::SipHasher24;
use wire::{Duration, Time};

/// The header field that carries a token, in requests and in responses.
pub const TOKEN_FIELD: &str = "DHTTP-Token";

/// Value of a [`TOKEN_FIELD`] in a request whose client lacks a token, and accepts one in the fallback message. No token
/// has this value, so that servers without support take it for an invalid one.
pub const TOKEN_REQUEST: &str = "?";

/// Maximum length of a token, in bytes. Other servers' tokens may be longer than this one's, but every request carries one.
pub const MAX_TOKEN_BYTES: usize = 64;

/// Whether this is a token: visible ASCII, 1 to 64 bytes, and not a [`TOKEN_REQUEST`].
pub fn is_token(value: &[u8]) -> bool {
    (1..=MAX_TOKEN_BYTES).contains(&value.len())
        && value.iter().all(u8::is_ascii_graphic)
        && value != TOKEN_REQUEST.as_bytes()
}

/// A key and its generation, which is part of every token made with it. The bytes of the key come from a CSPRNG.
#[derive(Clone, Copy)]
pub struct Key {
    /// Number of the key; two keys that are in use simultaneously have different numbers.
    pub generation: u8,
    /// The key.
    pub secret: [u8; 16],
}

/// Makes and checks tokens, with the current key and the previous one.
pub struct Tokens {
    current: Key,
    previous: Option<Key>,
    lifetime: Duration,
}

/// A token as the value of its field: 26 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token([u8; Token::DIGITS]);

/// Validity of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// The address is the client's.
    Valid,
    /// Valid, but more than half of its lifetime has passed, or its key is the previous one: the client needs a new
    /// token.
    Ageing,
    /// Invalid: unreadable, expired, from the future, of a discarded key, or forged.
    Nothing,
}

impl Tokens {
    /// Tokens made with `key`, valid for `lifetime`.
    pub const fn new(key: Key, lifetime: Duration) -> Self {
        Self { current: key, previous: None, lifetime }
    }

    /// Switches to another key. Tokens of the current key become ageing, and those of the previous one invalid.
    pub const fn rotate(&mut self, key: Key) {
        self.previous = Some(self.current);
        self.current = key;
    }

    /// Makes a token for a client at this address that accepts connections on this TCP port.
    pub fn make(&self, now: Time, client: SocketAddr) -> Token {
        let body = Body { generation: self.current.generation, second: second(now) };
        Token::encode(body, body.hash(&self.current, client))
    }

    /// Returns the validity of a client's [`TOKEN_FIELD`], for connections to this address and TCP port.
    pub fn check(&self, now: Time, client: SocketAddr, value: &[u8]) -> Validity {
        let Some((body, mac)) = Token::decode(value) else { return Validity::Nothing };
        let is_current = body.generation == self.current.generation;
        let previous = self.previous.filter(|key| key.generation == body.generation);
        let Some(key) = (if is_current { Some(self.current) } else { previous }) else {
            return Validity::Nothing;
        };
        // Both are machine words: the comparison takes constant time.
        if body.hash(&key, client) ^ mac != 0 {
            return Validity::Nothing;
        }
        let made = Time::ZERO + Duration::from_secs(u64::from(body.second));
        let age = now.since(made);
        if body.second > second(now) || age > self.lifetime {
            Validity::Nothing
        } else if is_current && age <= self.lifetime / 2 {
            Validity::Valid
        } else {
            Validity::Ageing
        }
    }
}

/// Debug output without the keys.
impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { current, previous, lifetime } = self;
        let generations = (current.generation, previous.map(|key| key.generation));
        f.debug_struct("Tokens").field("generations", &generations).field("lifetime", lifetime).finish()
    }
}

/// Contents of a token.
#[derive(Clone, Copy)]
struct Body {
    generation: u8,
    second: u32,
}

impl Body {
    fn hash(self, key: &Key, client: SocketAddr) -> u64 {
        let mut message = [0; 1 + 4 + 16 + 2];
        message[0] = self.generation;
        message[1..5].copy_from_slice(&self.second.to_be_bytes());
        // IPv4 addresses are mapped into IPv6, so that a client has one identity on sockets of either family.
        message[5..21].copy_from_slice(&super::address::mapped(client.ip()).octets());
        message[21..].copy_from_slice(&client.port().to_be_bytes());
        SipHasher24::new_with_key(&key.secret).hash(&message)
    }
}

impl Token {
    /// The length of the value, in bytes.
    pub const DIGITS: usize = 2 * (1 + 4 + 8);
    /// The length of the field line that carries a token, line end included, in bytes.
    pub const LINE_BYTES: usize = TOKEN_FIELD.len() + ": \r\n".len() + Self::DIGITS;

    /// The value of the field.
    pub fn as_str(&self) -> &str {
        // The bytes are always hexadecimal digits.
        core::str::from_utf8(&self.0).unwrap_or_default()
    }

    fn encode(body: Body, mac: u64) -> Self {
        let number = (u128::from(body.generation) << 96) | (u128::from(body.second) << 64) | u128::from(mac);
        let mut digits = [b'0'; Self::DIGITS];
        for (index, digit) in digits.iter_mut().rev().enumerate() {
            *digit = DIGITS[(number >> (4 * index) & 0xf) as usize];
        }
        Self(digits)
    }

    fn decode(value: &[u8]) -> Option<(Body, u64)> {
        let digits: &[u8; Self::DIGITS] = value.try_into().ok()?;
        let (body, mac) = digits.split_at(2 * (1 + 4));
        let (Some(body), Some(mac)) = (number(body), number(mac)) else { return None };
        let [_, _, _, generation, a, b, c, d] = body.to_be_bytes();
        Some((Body { generation, second: u32::from_be_bytes([a, b, c, d]) }, mac))
    }
}

/// Parses at most 16 hexadecimal digits, without a branch per digit, because every request carries a token.
fn number(digits: &[u8]) -> Option<u64> {
    let (number, any) = digits.iter().fold((0, 0), |(number, any), digit| {
        let value = VALUES[usize::from(*digit)];
        (number << 4 | u64::from(value & 0xf), any | value)
    });
    (any <= 0xf).then_some(number)
}

/// Value of each byte as a hexadecimal digit; more than 15 if it is not one.
const VALUES: [u8; 256] = {
    let mut values = [u8::MAX; 256];
    let mut value = 0;
    while value < 16 {
        values[DIGITS[value as usize] as usize] = value;
        value += 1;
    }
    values
};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Whole seconds; they wrap after 136 years, which invalidates all tokens made before.
fn second(now: Time) -> u32 {
    u32::try_from(now.as_nanos() / 1_000_000_000 % (1 << 32)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 40_001);
    const LIFETIME: Duration = Duration::from_secs(3_600);

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn key(generation: u8) -> Key {
        Key { generation, secret: [generation ^ 0x5a; 16] }
    }

    #[test]
    fn token_is_valid_from_its_second_to_the_end_of_its_lifetime() {
        let tokens = Tokens::new(key(1), LIFETIME);
        let token = tokens.make(at(100), CLIENT);
        let validity = |now| tokens.check(now, CLIENT, token.as_str().as_bytes());
        assert_eq!(validity(at(99)), Validity::Nothing, "from the future");
        assert_eq!([validity(at(100)), validity(at(1_900))], [Validity::Valid, Validity::Valid]);
        assert_eq!([validity(at(1_901)), validity(at(3_700))], [Validity::Ageing, Validity::Ageing]);
        assert_eq!(validity(at(3_700) + Duration::from_nanos(1)), Validity::Nothing);
    }

    #[test]
    fn token_of_the_previous_key_is_ageing_and_older_ones_invalid() {
        let mut tokens = Tokens::new(key(1), LIFETIME);
        let token = tokens.make(at(0), CLIENT);
        let mut validities = Vec::new();
        for generation in [2, 3] {
            tokens.rotate(key(generation));
            validities.push(tokens.check(at(1), CLIENT, token.as_str().as_bytes()));
        }
        assert_eq!(validities, [Validity::Ageing, Validity::Nothing]);
    }

    #[test]
    fn tokens_are_bound_to_address_port_and_key() {
        let tokens = Tokens::new(key(1), LIFETIME);
        let token = tokens.make(at(5), CLIENT).as_str().to_owned();
        let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 8));
        let mapped = IpAddr::V6(Ipv6Addr::from([0, 0, 0, 0, 0, 0xffff, 0xc000, 0x0207]));
        for (address, port, validity) in [
            (other, 40_001, Validity::Nothing),
            (CLIENT.ip(), 40_002, Validity::Nothing),
            (CLIENT.ip(), 0, Validity::Nothing),
            (mapped, 40_001, Validity::Valid),
        ] {
            let client = SocketAddr::new(address, port);
            assert_eq!(tokens.check(at(5), client, token.as_bytes()), validity, "{client}");
        }
        let other_server = Tokens::new(Key { secret: [9; 16], ..key(1) }, LIFETIME);
        assert_eq!(other_server.check(at(5), CLIENT, token.as_bytes()), Validity::Nothing);
        for index in 0..token.len() {
            let mut forged = token.clone().into_bytes();
            forged[index] = if forged[index] == b'0' { b'1' } else { b'0' };
            assert_eq!(tokens.check(at(5), CLIENT, &forged), Validity::Nothing, "digit {index}");
            assert_eq!(tokens.check(at(5), CLIENT, &token.as_bytes()[..index]), Validity::Nothing);
        }
        assert_eq!(tokens.check(at(5), CLIENT, token.to_uppercase().as_bytes()), Validity::Nothing);
    }

    #[test]
    fn debug_output_of_tokens_has_no_key() {
        assert!(!format!("{:?}", Tokens::new(key(1), LIFETIME)).contains("91"), "0x5a ^ 1");
    }
}
