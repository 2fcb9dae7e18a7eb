//! MNG (version 1.0, 2001): an animation as a list of PNGs, each drawn over the one before it; the W3C note's choice.
//!
//! A subset: no deltas within images, no stored objects. No current browser shows it; APNG is its successor.
//! <http://www.libpng.org/pub/mng/spec/>

use crate::picture::Picture;
use crate::png::{self, chunk};

const SIGNATURE: [u8; 8] = *b"\x8aMNG\r\n\x1a\n";
const PNG_SIGNATURE: usize = 8;
/// Simplicity profile: the simple features, and transparency of images and of the background.
const PROFILE: u32 = 0b1100_1011;

/// The animation as an MNG; `None` where one of its images cannot be written.
pub fn encode(picture: &Picture) -> Option<Vec<u8>> {
    file(picture, None)
}

/// The same with gamma for all of its images, as the note's.
pub fn encode_with_gamma(picture: &Picture) -> Option<Vec<u8>> {
    file(picture, Some(png::GAMMA))
}

fn file(picture: &Picture, gamma: Option<u32>) -> Option<Vec<u8>> {
    let palette = picture.palette();
    // A pixel cannot become transparent by drawing over it: such frames begin with an empty canvas.
    let begins_anew = picture.is_transparent();
    let mut out = SIGNATURE.to_vec();
    let frames = u32::try_from(picture.frames.len()).ok()?;
    let ticks = picture.frames.iter().fold(0_u32, |sum, frame| sum.saturating_add(frame.delay.into()));
    let header = [picture.width, picture.height, HUNDREDTHS, frames, frames, ticks, PROFILE];
    chunk(&mut out, b"MHDR", &header.map(u32::to_be_bytes).concat());
    // Number of repetitions, without a pause.
    let plays = if picture.plays == 0 { ENDLESS } else { picture.plays };
    chunk(&mut out, b"TERM", &[&[3, 0][..], &0_u32.to_be_bytes(), &plays.to_be_bytes()].concat());
    if let Some(gamma) = gamma {
        chunk(&mut out, b"gAMA", &gamma.to_be_bytes());
    }
    let shared = palette.as_ref().filter(|_| !begins_anew);
    if let Some(palette) = shared {
        let colours: Vec<u8> = palette.colours.iter().flat_map(|colour| &colour[..3]).copied().collect();
        chunk(&mut out, b"PLTE", &colours);
    }
    let mode = if begins_anew { 3 } else { 1 };
    for (number, frame) in picture.frames.iter().enumerate() {
        // A new subframe without a name, and the delay from now on.
        let delay = [&[mode, 0, 2, 0, 0, 0][..], &u32::from(frame.delay).to_be_bytes()].concat();
        chunk(&mut out, b"FRAM", &delay);
        let whole = [0, 0, picture.width as usize, picture.height as usize];
        let part = if begins_anew { whole } else { picture.changed(number) };
        let [left, top, ..] = part.map(|length| u32::try_from(length).unwrap_or(u32::MAX));
        if number > 0 && !begins_anew {
            chunk(&mut out, b"DEFI", &[&[0; 4][..], &left.to_be_bytes(), &top.to_be_bytes()].concat());
        }
        embed(&mut out, &png::encode_part(picture, number, part, palette.as_ref())?, shared.is_some());
    }
    chunk(&mut out, b"MEND", &[]);
    Some(out)
}

/// Ticks in a second: GIF's delays are hundredths of one.
const HUNDREDTHS: u32 = 100;
const ENDLESS: u32 = 0x7FFF_FFFF;

/// A PNG's chunks without its signature; an empty palette represents the shared one.
fn embed(out: &mut Vec<u8>, png: &[u8], shares_palette: bool) {
    for (name, data) in chunks(png.get(PNG_SIGNATURE..).unwrap_or_default()) {
        let is_shared = shares_palette && &name == b"PLTE";
        chunk(out, &name, if is_shared { &[] } else { data });
    }
}

/// Names and data of the complete chunks.
fn chunks(mut bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (name, rest) = rest.split_first_chunk::<4>()?;
        let (data, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        bytes = rest.get(4..)?;
        Some((*name, data))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::two_frames;
    use crate::png::tests::decoded;

    /// The images in a file, as PNGs again.
    fn images(file: &[u8]) -> Vec<Vec<u8>> {
        let mut shared: &[u8] = &[];
        let mut images: Vec<Vec<u8>> = Vec::new();
        for (name, data) in chunks(&file[SIGNATURE.len()..]) {
            match &name {
                b"PLTE" if images.is_empty() => shared = data,
                b"IHDR" => images.push(b"\x89PNG\r\n\x1a\n".to_vec()),
                _ => {}
            }
            if matches!(&name, b"IHDR" | b"PLTE" | b"tRNS" | b"IDAT" | b"IEND")
                && let Some(image) = images.last_mut()
            {
                chunk(image, &name, if &name == b"PLTE" && data.is_empty() { shared } else { data });
            }
        }
        images
    }

    #[test]
    fn changed_pixels_are_drawn_over_the_previous_frame() {
        let picture = two_frames(false);
        let file = encode(&picture).unwrap();
        let names: Vec<_> =
            chunks(&file[8..]).map(|(name, _)| String::from_utf8(name.to_vec()).unwrap()).collect();
        assert_eq!(
            names.join(" "),
            "MHDR TERM PLTE FRAM IHDR PLTE IDAT IEND FRAM DEFI IHDR PLTE IDAT IEND MEND"
        );
        let shown: Vec<_> = images(&file).iter().flat_map(|image| decoded(image)).collect();
        assert_eq!(shown, [picture.frames[0].pixels.clone(), vec![[255; 4]]]);
    }

    #[test]
    fn transparent_frames_begin_with_an_empty_canvas() {
        let picture = two_frames(true);
        let shown: Vec<_> =
            images(&encode(&picture).unwrap()).iter().flat_map(|image| decoded(image)).collect();
        assert_eq!(shown, [picture.frames[0].pixels.clone(), picture.frames[1].pixels.clone()]);
    }
}
