//! A decoded picture: each frame as the viewer sees it, with all of the canvas. GIFs are read here, others in `still`.
//!
//! The number of pixels is limited to [`MAX_PIXELS`] in all frames together: a larger picture (a decompression bomb)
//! is reported and left out.

use std::collections::BTreeMap;
use std::io::Cursor;

use gif::{ColorOutput, DecodeOptions, DisposalMethod, MemoryLimit, Repeat};

/// Maximum number of pixels in all frames: 64 MB decoded.
pub const MAX_PIXELS: u64 = 1 << 24;

/// A decoded image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width of the canvas in pixels, at least 1.
    pub width: u32,
    /// Height of the canvas in pixels, at least 1.
    pub height: u32,
    /// Frames, at least one.
    pub frames: Vec<Frame>,
    /// Number of times an animation is shown; 0 is forever.
    pub plays: u32,
}

/// A frame, with all of the canvas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Red, green, blue, alpha, from the top left; a transparent pixel is four zeros.
    pub pixels: Vec<[u8; 4]>,
    /// Display time, in hundredths of a second.
    pub delay: u16,
}

/// A palette of at most 256 colours, those with transparency first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Palette {
    /// Colours in the order of their indices.
    pub colours: Vec<[u8; 4]>,
}

impl Picture {
    /// Decodes a file.
    ///
    /// # Errors
    /// The file is not a GIF, is damaged, or is too large.
    pub fn of_gif(bytes: &[u8]) -> Result<Self, String> {
        let mut options = DecodeOptions::new();
        options.set_color_output(ColorOutput::RGBA);
        options.set_memory_limit(MemoryLimit::Bytes((4 * MAX_PIXELS).try_into().expect("it is not zero")));
        let reported =
            |error: gif::DecodingError| format!("undecodable: {error}").replace(char::is_control, "?");
        let mut decoder = options.read_info(Cursor::new(bytes)).map_err(reported)?;
        let (width, height) = (usize::from(decoder.width()), usize::from(decoder.height()));
        let area = width * height;
        if area == 0 {
            return Err("it has no pixels".to_owned());
        }
        let plays = match decoder.repeat() {
            Repeat::Infinite => 0,
            Repeat::Finite(again) => u32::from(again) + 1,
        };
        let mut frames: Vec<Frame> = Vec::new();
        let mut canvas = Vec::new();
        loop {
            if (area * (frames.len() + 1)) as u64 > MAX_PIXELS {
                return Err(format!("more than {MAX_PIXELS} pixels"));
            }
            let Some(frame) = decoder.read_next_frame().map_err(reported)? else { break };
            canvas.resize(area, [0; 4]);
            let before = (frame.dispose == DisposalMethod::Previous).then(|| canvas.clone());
            let shown = FramePosition {
                left: frame.left.into(),
                top: frame.top.into(),
                width: frame.width.into(),
                canvas: width,
            };
            shown.draw(&mut canvas, frame.buffer.as_chunks().0);
            frames.push(Frame { pixels: canvas.clone(), delay: frame.delay });
            match frame.dispose {
                DisposalMethod::Any | DisposalMethod::Keep => {}
                DisposalMethod::Previous => canvas = before.unwrap_or_default(),
                DisposalMethod::Background => shown.clear(&mut canvas, frame.height.into()),
            }
        }
        if frames.is_empty() {
            return Err("it has no frame".to_owned());
        }
        let dimension = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        Ok(Self { width: dimension(width), height: dimension(height), frames, plays })
    }

    /// Whether the picture has more than one frame.
    pub fn is_animation(&self) -> bool {
        self.frames.len() > 1
    }

    /// Whether any pixel is transparent.
    pub fn is_transparent(&self) -> bool {
        self.frames.iter().any(|frame| frame.pixels.iter().any(|pixel| pixel[3] < 255))
    }

    /// Number of pixels of each colour in the first frame.
    pub fn colours(&self) -> BTreeMap<[u8; 4], usize> {
        let mut counts = BTreeMap::new();
        for pixel in self.frames.iter().take(1).flat_map(|frame| &frame.pixels) {
            *counts.entry(*pixel).or_default() += 1;
        }
        counts
    }

    /// Palette of the picture, if all frames together have at most 256 colours.
    pub fn palette(&self) -> Option<Palette> {
        let mut colours = std::collections::BTreeSet::new();
        for pixel in self.frames.iter().flat_map(|frame| &frame.pixels) {
            colours.insert(*pixel);
            if colours.len() > 256 {
                return None;
            }
        }
        // Colours with transparency come first: the format lists alpha for those only.
        let mut colours: Vec<_> = colours.into_iter().collect();
        colours.sort_by_key(|colour| (colour[3], *colour));
        Some(Palette { colours })
    }

    /// Rectangle in which `frame` differs from the one before it: left, top, width, height; all of the canvas for the first.
    pub fn changed(&self, frame: usize) -> [usize; 4] {
        let (width, height) = (self.width as usize, self.height as usize);
        let Some(before) = frame.checked_sub(1).and_then(|before| self.frames.get(before)) else {
            return [0, 0, width, height];
        };
        let now = &self.frames[frame].pixels;
        let differs = |x: usize, y: usize| now[y * width + x] != before.pixels[y * width + x];
        let rows: Vec<usize> = (0..height).filter(|y| (0..width).any(|x| differs(x, *y))).collect();
        let columns: Vec<usize> = (0..width).filter(|x| (0..height).any(|y| differs(*x, y))).collect();
        match (columns.first(), columns.last(), rows.first(), rows.last()) {
            (Some(left), Some(right), Some(top), Some(bottom)) => {
                [*left, *top, right - left + 1, bottom - top + 1]
            }
            // Nothing changed; a frame has at least one pixel.
            (None, ..) | (_, None, ..) | (_, _, None, _) | (_, _, _, None) => [0, 0, 1, 1],
        }
    }

    /// The pixels of a part of a frame, row by row.
    pub fn part(&self, frame: usize, [left, top, width, height]: [usize; 4]) -> Vec<[u8; 4]> {
        let row = self.width as usize;
        let pixels = &self.frames[frame].pixels;
        (top..top + height).flat_map(|y| &pixels[y * row + left..][..width]).copied().collect()
    }
}

/// Position of a frame on the canvas; parts outside of it are not shown.
struct FramePosition {
    left: usize,
    top: usize,
    width: usize,
    canvas: usize,
}

impl FramePosition {
    fn draw(&self, canvas: &mut [[u8; 4]], pixels: &[[u8; 4]]) {
        for (number, pixel) in pixels.iter().enumerate() {
            if let Some(stored) = self.at(canvas, number).filter(|_| pixel[3] != 0) {
                *stored = *pixel;
            }
        }
    }

    fn clear(&self, canvas: &mut [[u8; 4]], height: usize) {
        for number in 0..self.width * height {
            if let Some(stored) = self.at(canvas, number) {
                *stored = [0; 4];
            }
        }
    }

    fn at<'a>(&self, canvas: &'a mut [[u8; 4]], number: usize) -> Option<&'a mut [u8; 4]> {
        let (x, y) = (self.left + number % self.width, self.top + number / self.width);
        if x < self.canvas { canvas.get_mut(y * self.canvas + x) } else { None }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two frames of 4 by 2, a pixel changed in the second; the first column is transparent if requested.
    pub(crate) fn two_frames(is_transparent: bool) -> Picture {
        let first = if is_transparent { [0; 4] } else { [9, 9, 9, 255] };
        let pixels: Vec<[u8; 4]> =
            (0..8_u8).map(|n| if n % 4 == 0 { first } else { [n, 0, 200, 255] }).collect();
        let mut second = pixels.clone();
        second[6] = [255, 255, 255, 255];
        let frame = |pixels| Frame { pixels, delay: 10 };
        Picture { width: 4, height: 2, frames: vec![frame(pixels), frame(second)], plays: 0 }
    }

    #[test]
    fn decompression_bombs_and_damage_are_errors() {
        let bomb = b"GIF89a\xff\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02\x00;";
        assert!(Picture::of_gif(bomb).unwrap_err().contains("more than"));
        for wrong in [&b""[..], b"GIF89a", b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", b"not a GIF"] {
            assert!(Picture::of_gif(wrong).is_err());
        }
    }

    #[test]
    fn a_frame_is_drawn_at_its_position_over_the_previous_one() {
        let mut file = Vec::new();
        let mut encoder = gif::Encoder::new(&mut file, 2, 1, &[1, 2, 3, 4, 5, 6]).unwrap();
        let frame = |left, width, indices: &'static [u8]| gif::Frame {
            left,
            width,
            height: 1,
            buffer: indices.into(),
            ..Default::default()
        };
        encoder.write_frame(&frame(0, 2, &[0, 0])).unwrap();
        encoder.write_frame(&frame(1, 1, &[1])).unwrap();
        drop(encoder);
        let picture = Picture::of_gif(&file).unwrap();
        assert_eq!(picture.frames[1].pixels, [[1, 2, 3, 255], [4, 5, 6, 255]]);
        assert_eq!(picture.changed(1), [1, 0, 1, 1]);
    }
}
