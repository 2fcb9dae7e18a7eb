//! GIF encoder after the CompuServe specification of 1990 (GIF89a): screen, palette, frames in LZW, comment,
//! trailer.
//!
//! Pictures are generated to size, and come as palette indices.

/// An image or, with several frames, an animation that repeats without end. All frames have its size.
pub(super) struct Gif<'a> {
    pub(super) width: u16,
    pub(super) height: u16,
    /// Number of colours is a power of two, 2 to 256.
    pub(super) palette: &'a [[u8; 3]],
    /// Compressed.
    pub(super) frames: &'a [Vec<u8>],
}

/// Bits per pixel for a palette of this size; LZW's initial code size.
pub(super) fn pixel_bits(colours: usize) -> u32 {
    colours.ilog2().max(2)
}

/// Length in bytes of a GIF with frames of these compressed lengths.
pub(super) fn length(colours: usize, frames: impl ExactSizeIterator<Item = usize>) -> usize {
    let (animation, control) = if frames.len() > 1 { (19, 8) } else { (0, 0) };
    let blocks = |length: usize| length + length.div_ceil(255) + 1;
    let frames: usize = frames.map(|length| control + 10 + 1 + blocks(length)).sum();
    13 + 3 * colours + animation + frames + 1
}

/// Whether a comment can fill exactly this number of bytes.
pub(super) fn can_pad(bytes: usize) -> bool {
    !matches!(bytes, 1 | 2 | 4)
}

impl Gif<'_> {
    /// Encodes the file, with a comment of `padding` bytes, markers included.
    pub(super) fn encode(&self, padding: usize) -> Vec<u8> {
        let Self { width, height, palette, frames } = self;
        let mut out = b"GIF89a".to_vec();
        let size = [width.to_le_bytes(), height.to_le_bytes()].concat();
        out.extend(&size);
        // A global palette of 2^(n+1) colours; the first is the background; pixels are square.
        let depth = u8::try_from(palette.len().ilog2().saturating_sub(1)).unwrap_or(7);
        out.extend([0x80 | depth << 4 | depth, 0, 0]);
        out.extend(palette.as_flattened());
        if frames.len() > 1 {
            out.extend(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0");
        }
        for frame in *frames {
            if frames.len() > 1 {
                out.extend([0x21, 0xf9, 4, 0, FRAME_TIME, 0, 0, 0]);
            }
            out.extend([0x2c, 0, 0, 0, 0]);
            out.extend(&size);
            out.extend([0, u8::try_from(pixel_bits(palette.len())).unwrap_or(8)]);
            for block in frame.chunks(255) {
                out.push(u8::try_from(block.len()).unwrap_or(255));
                out.extend(block);
            }
            out.push(0);
        }
        comment(padding, &mut out);
        out.push(0x3b);
        out
    }
}

/// Display time of a frame, in hundredths of a second.
const FRAME_TIME: u8 = 20;

/// Appends a comment of exactly this number of bytes; nothing for 0.
fn comment(bytes: usize, out: &mut Vec<u8>) {
    let Some(mut remaining) = bytes.checked_sub(3) else { return };
    out.extend([0x21, 0xfe]);
    while remaining > 1 {
        // A block has a length and at least one byte: a single byte must not remain.
        let block = if remaining == 257 { 255 } else { remaining.min(256) };
        out.push(u8::try_from(block - 1).unwrap_or(255));
        out.extend(b"made by roundtrip ".iter().cycle().take(block - 1));
        remaining -= block;
    }
    out.push(0);
}

/// LZW as in GIF: codes grow from one bit more than a pixel to 12 bits, and start anew when these are used
/// up.
pub(super) struct Lzw {
    pixel_bits: u32,
    code_bits: u32,
    next: u16,
    /// Code of a prefix followed by a pixel, at the index that both form; 0 is none.
    codes: Vec<u16>,
    prefix: Option<u16>,
    out: Vec<u8>,
    /// Bits that do not fill a byte yet.
    pending: u32,
    pending_bits: u32,
}

/// Maximum number of codes.
const CODES: u16 = 4_096;

impl Lzw {
    pub(super) fn new(pixel_bits: u32) -> Self {
        let mut lzw = Self {
            pixel_bits,
            code_bits: pixel_bits + 1,
            next: 0,
            codes: vec![0; usize::from(CODES) << pixel_bits],
            prefix: None,
            out: Vec::new(),
            pending: 0,
            pending_bits: 0,
        };
        lzw.start();
        lzw
    }

    /// Adds a pixel of at most `pixel_bits`.
    pub(super) fn push(&mut self, pixel: u8) {
        let Some(prefix) = self.prefix.replace(u16::from(pixel)) else { return };
        // Both are within bounds: a prefix is below CODES, and a pixel has at most `pixel_bits`.
        let position = usize::from(prefix) << self.pixel_bits | usize::from(pixel);
        if self.codes[position] != 0 {
            self.prefix = Some(self.codes[position]);
            return;
        }
        self.emit(prefix);
        if self.next < CODES {
            self.codes[position] = self.next;
            self.next += 1;
        } else {
            self.clear();
        }
    }

    /// Length in bytes if this were the end.
    pub(super) fn length(&self) -> usize {
        let bits = self.pending_bits + self.code_bits + self.code_bits + u32::from(self.grows());
        self.out.len() + bits.div_ceil(8) as usize
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        if let Some(prefix) = self.prefix {
            self.emit(prefix);
        }
        self.emit((1 << self.pixel_bits) + 1);
        if self.pending_bits > 0 {
            self.out.push(self.pending.to_le_bytes()[0]);
        }
        self.out
    }

    /// Emits a clear code, and starts with an empty table.
    fn clear(&mut self) {
        self.codes.fill(0);
        self.start();
    }

    /// Emits a clear code; the table is empty.
    fn start(&mut self) {
        let clear = 1 << self.pixel_bits;
        self.emit(clear);
        (self.next, self.code_bits) = (clear + 2, self.pixel_bits + 1);
    }

    fn emit(&mut self, code: u16) {
        self.pending |= u32::from(code) << self.pending_bits;
        self.pending_bits += self.code_bits;
        while self.pending_bits >= 8 {
            self.out.push(self.pending.to_le_bytes()[0]);
            self.pending >>= 8;
            self.pending_bits -= 8;
        }
        self.code_bits += u32::from(self.grows());
    }

    /// Whether the next code takes one more bit.
    fn grows(&self) -> bool {
        u32::from(self.next) == 1 << self.code_bits && self.next < CODES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_fills_every_length_that_it_can() {
        for bytes in (0..1_000).filter(|bytes| can_pad(*bytes)) {
            let mut out = Vec::new();
            comment(bytes, &mut out);
            assert_eq!(out.len(), bytes);
        }
    }

    #[test]
    fn encoded_images_decode_and_have_the_predicted_length() {
        for (bits, count) in [(1, 7), (2, 64), (4, 5_000), (8, 30_000_u16)] {
            let colours = 1 << bits;
            let pixel = |at: usize| u8::try_from(at * at / 7 % colours).unwrap();
            let pixels: Vec<u8> = (0..usize::from(count)).map(pixel).collect();
            let mut lzw = Lzw::new(pixel_bits(colours));
            pixels.iter().for_each(|pixel| lzw.push(*pixel));
            let predicted = lzw.length();
            let frame = lzw.finish();
            assert_eq!(frame.len(), predicted, "{count} pixels of {bits} bits");
            let palette = vec![[0; 3]; colours];
            for frames in [vec![frame.clone()], vec![frame.clone(); 3]] {
                let gif = Gif { width: count, height: 1, palette: &palette, frames: &frames };
                let file = gif.encode(0);
                assert_eq!(file.len(), length(colours, frames.iter().map(Vec::len)));
                let mut decoder = gif::DecodeOptions::new().read_info(&file[..]).unwrap();
                for _ in &frames {
                    assert_eq!(decoder.read_next_frame().unwrap().unwrap().buffer, pixels);
                }
                assert!(decoder.read_next_frame().unwrap().is_none());
            }
        }
    }
}
