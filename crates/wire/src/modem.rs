//! Modem with optional compression: takes the bytes of packets, and returns their size on the phone line.
//!
//! | module | contents |
//! | --- | --- |
//! | `headers` | TCP/IP header compression (RFC 1144) |
//! | `frame` | PPP frames on a serial port (RFC 1662) |
//! | [`v42bis`] | the compressor (ITU-T V.42 bis) |
//! | `dictionary` | its dictionary of strings |
//!
//! `papers/w3c` measures what compression of pages gains where a modem already compresses. Rate and delay of the line,
//! and losses, are the [`link`](crate::link)'s. The modem's error correction is modelled by its overhead in bytes.

#[cfg(test)]
mod decoder;
mod dictionary;
mod frame;
mod headers;
pub mod v42bis;

use crate::{Bytes, Rate};
use headers::Compressor;
pub use v42bis::Dictionary;
use v42bis::Encoder;

/// Configuration of a modem. The default is a modem of the 1990s: 2048 strings, of at most 32 characters, and a serial
/// port that is no bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Dictionary of the compressor; `None`: error correction (V.42) without compression.
    pub dictionary: Option<Dictionary>,
    /// Rate of the serial port between the host and its modem, start and stop bits included (38.4 kbit/s carry 3,840
    /// bytes per second). It limits throughput even if the modem compresses well. `None`: no limit.
    pub port: Option<Rate>,
    /// Whether PPP compresses headers of TCP and IP (RFC 1144).
    pub compresses_headers: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { dictionary: Some(Dictionary::default()), port: None, compresses_headers: false }
    }
}

/// One direction of a modem.
#[derive(Clone, Debug)]
pub struct Modem {
    encoder: Option<Encoder>,
    /// Ratio of the line's rate to the port's, where the port may be the bottleneck.
    port: Option<(u64, u64)>,
    headers: Option<Compressor>,
    short: Vec<u8>,
    framed: Vec<u8>,
    sent: Vec<u8>,
}

/// V.42's frames: 128 bytes of data (N401's default), and a flag, an address, two bytes of control and a check
/// sequence of two.
const FRAME_DATA: u64 = 128;
const FRAME_OVERHEAD: u64 = 6;
/// A start bit and a stop bit around eight of data.
const PORT_BITS: u64 = 10;

impl Modem {
    /// Creates a modem on a line of this rate, with an empty dictionary.
    pub fn new(config: Config, line: Option<Rate>) -> Self {
        let Config { dictionary, port, compresses_headers } = config;
        let port = line.zip(port);
        Self {
            encoder: dictionary.map(Encoder::new),
            port: port.map(|(line, port)| (line.millibits_per_second(), port.millibits_per_second())),
            headers: compresses_headers.then(Compressor::default),
            short: Vec::new(),
            framed: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// Sends a packet, and returns the line time that it takes, in bytes.
    pub fn send(&mut self, packet: &[u8]) -> Bytes {
        let Self { encoder, port, headers, short, framed, sent } = self;
        framed.clear();
        match headers {
            Some(headers) => {
                short.clear();
                let protocol = headers.compress(packet, short);
                frame::append(protocol, short, framed);
            }
            None => frame::append(frame::IP, packet, framed),
        }
        let compressed = match encoder {
            Some(encoder) => {
                sent.clear();
                framed.iter().for_each(|byte| encoder.push(*byte, sent));
                encoder.flush(sent);
                sent.len() as u64
            }
            None => framed.len() as u64,
        };
        let on_line = compressed + FRAME_OVERHEAD * compressed.div_ceil(FRAME_DATA);
        let through_port = port.map(|(line, port)| {
            let bits = u128::from(framed.len() as u64 * PORT_BITS) * u128::from(line);
            u64::try_from(bits.div_ceil(u128::from(port.max(1)) * 8)).unwrap_or(u64::MAX)
        });
        Bytes::new(on_line.max(through_port.unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Option<Rate> = Rate::from_bits_per_second(28_800);

    #[test]
    fn repetition_shrinks_and_noise_grows_slightly() {
        let mut modem = Modem::new(Config::default(), LINE);
        let text = b"<a href=\"/products/index.htm\">products</a> and more.<br>\n".repeat(25);
        let [first, second] = [(); 2].map(|()| modem.send(&text).as_f64() / text.len() as f64);
        assert!(second < 0.25 && second < first && first < 0.8, "{first} {second}");
        let mut random = crate::Seed::default().stream("noise", 0);
        let noise: Vec<u8> = (0..1_460).map(|_| random.next_u64().to_le_bytes()[0]).collect();
        modem.send(&noise);
        let noise = modem.send(&noise[..1_400]).as_f64() / 1_400.0;
        assert!((1.0..1.25).contains(&noise), "{noise}");
    }

    #[test]
    fn slow_port_limits_throughput_despite_compression() {
        let port = Rate::from_bits_per_second(38_400);
        let mut modem = Modem::new(Config { port, ..Config::default() }, LINE);
        // 1000 zeros, 7 bytes of a frame and one escaped byte of its header, at 3840 a second: 0.2625 s of 3600.
        let zeros = modem.send(&[0; 1_000]).get();
        assert!((940..950).contains(&zeros), "{zeros}");
    }
}
