//! PNG (RFC 2083 and the third edition) and, for animations, APNG: lossless, in as few bits as the colours need.
//!
//! New files are written plainly and optimised by oxipng, which tries filters and fewer bits. An existing PNG is
//! optimised directly, and retains its colour profile and all other chunks that affect its looks.

use flate2::Crc;
use oxipng::{Options, StripChunks};
use png::{BitDepth, BlendOp, ColorType, Compression, DisposeOp, Encoder, EncodingError, Filter};

use crate::picture::{MAX_PIXELS, Palette, Picture};

/// The picture as a PNG; `None` where it cannot be written.
pub fn encode(picture: &Picture) -> Option<Vec<u8>> {
    let palette = picture.palette();
    let mut out = Vec::new();
    write(picture, palette.as_ref(), &mut out).ok()?;
    Some(optimised(&out).unwrap_or(out))
}

/// The picture as a batch converter of 1997 writes it (`pnmtopng`): as few bits as the colours need, no filter for
/// palettes, not optimised, with gamma; `None` where it cannot be written.
pub fn encode_unoptimised(picture: &Picture) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    write(picture, picture.palette().as_ref(), &mut out).ok()?;
    let rest = out.split_off(HEADER_BYTES.min(out.len()));
    chunk(&mut out, b"gAMA", &GAMMA.to_be_bytes());
    out.extend(rest);
    Some(out)
}

/// Signature and `IHDR`.
const HEADER_BYTES: usize = 33;
/// 1 / 2.2, in 100,000ths (RFC 2083, section 4.2.3): a chunk of 16 bytes.
pub(crate) const GAMMA: u32 = 45_455;

/// A PNG made smaller without loss; `None` where it cannot be read, or is too large.
pub fn optimised(png: &[u8]) -> Option<Vec<u8>> {
    // 16 bits of four channels for the maximum number of pixels.
    let max = usize::try_from(8 * MAX_PIXELS).ok();
    let options =
        Options { strip: StripChunks::Safe, max_decompressed_size: max, ..Options::from_preset(PRESET) };
    oxipng::optimize_from_memory(png, &options).ok()
}

/// Preset 0 to 6: the last that tries filters on the whole and not row by row, which takes many times longer.
const PRESET: u8 = 3;

/// A part of one frame as a PNG of its own, with this palette.
pub fn encode_part(
    picture: &Picture,
    frame: usize,
    part: [usize; 4],
    palette: Option<&Palette>,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut writer = encoder(&mut out, [part[2], part[3]], palette).ok()?.write_header().ok()?;
    writer.write_image_data(&data(picture, frame, part, palette)).ok()?;
    writer.finish().ok().map(|()| out)
}

fn write(picture: &Picture, palette: Option<&Palette>, out: &mut Vec<u8>) -> Result<(), EncodingError> {
    let mut encoder = encoder(out, [picture.width as usize, picture.height as usize], palette)?;
    if picture.is_animation() {
        encoder.set_animated(u32::try_from(picture.frames.len()).unwrap_or(u32::MAX), picture.plays)?;
        encoder.set_dispose_op(DisposeOp::None)?;
        encoder.set_blend_op(BlendOp::Source)?;
    }
    let mut writer = encoder.write_header()?;
    for (number, frame) in picture.frames.iter().enumerate() {
        let part = picture.changed(number);
        if picture.is_animation() {
            let [left, top, width, height] = part.map(|length| u32::try_from(length).unwrap_or(u32::MAX));
            // The first frame covers all of the canvas, and needs no chunk of its own.
            if number > 0 {
                writer.set_frame_dimension(width, height)?;
                writer.set_frame_position(left, top)?;
            }
            writer.set_frame_delay(frame.delay, 100)?;
        }
        writer.write_image_data(&data(picture, number, part, palette))?;
    }
    writer.finish()
}

fn encoder<'a>(
    out: &'a mut Vec<u8>,
    [width, height]: [usize; 2],
    palette: Option<&Palette>,
) -> Result<Encoder<'a, &'a mut Vec<u8>>, EncodingError> {
    let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let mut encoder = Encoder::new(out, length(width), length(height));
    // This also sets a filter; ours replaces it.
    encoder.set_compression(Compression::High);
    match palette {
        Some(palette) => {
            encoder.set_color(ColorType::Indexed);
            encoder.set_depth(match bits(palette) {
                1 => BitDepth::One,
                2 => BitDepth::Two,
                4 => BitDepth::Four,
                _ => BitDepth::Eight,
            });
            encoder.set_palette(
                palette.colours.iter().flat_map(|colour| &colour[..3]).copied().collect::<Vec<_>>(),
            );
            let alphas = palette.colours.iter().map(|colour| colour[3]);
            let seen_through: Vec<u8> = alphas.take_while(|alpha| *alpha < 255).collect();
            if !seen_through.is_empty() {
                encoder.set_trns(seen_through);
            }
            encoder.set_filter(Filter::NoFilter);
        }
        None => {
            encoder.set_color(ColorType::Rgba);
            encoder.set_depth(BitDepth::Eight);
            encoder.set_filter(Filter::Adaptive);
        }
    }
    Ok(encoder)
}

/// The rows of a rectangle, with packed pixels.
fn data(picture: &Picture, frame: usize, part: [usize; 4], palette: Option<&Palette>) -> Vec<u8> {
    let pixels = picture.part(frame, part);
    let Some(palette) = palette else { return pixels.into_flattened() };
    let bits = bits(palette);
    let key = |colour: &[u8; 4]| (colour[3], *colour);
    let index = |pixel: &[u8; 4]| {
        let index = palette.colours.binary_search_by_key(&key(pixel), key).unwrap_or(0);
        u8::try_from(index).unwrap_or(0)
    };
    let pack = |pixels: &[[u8; 4]]| {
        let shifts = (1..=8 / bits).map(|position| 8 - bits * position);
        pixels.iter().zip(shifts).fold(0, |byte, (pixel, shift)| byte | index(pixel) << shift)
    };
    pixels.chunks(part[2]).flat_map(|row| row.chunks(8 / bits).map(pack)).collect()
}

/// Bits of each pixel.
fn bits(palette: &Palette) -> usize {
    match palette.colours.len() {
        0..=2 => 1,
        3..=4 => 2,
        5..=16 => 4,
        _ => 8,
    }
}

/// Appends a chunk with its length and checksum, as PNG and MNG have them.
pub(crate) fn chunk(out: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut crc = Crc::new();
    crc.update(name);
    crc.update(data);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(name);
    out.extend_from_slice(data);
    out.extend_from_slice(&crc.sum().to_be_bytes());
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    use crate::picture::tests::two_frames;

    /// The frames of a PNG as they are in the file, each as red, green, blue, alpha.
    pub(crate) fn decoded(file: &[u8]) -> Vec<Vec<[u8; 4]>> {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
        decoder.set_transformations(png::Transformations::ALPHA | png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let frames = reader.info().animation_control().map_or(1, |control| control.num_frames);
        let read = |_| {
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            let size = reader.next_frame(&mut pixels).unwrap().buffer_size();
            let pixels = pixels[..size].as_chunks().0;
            // A transparent pixel may have any colour.
            pixels.iter().map(|pixel: &[u8; 4]| if pixel[3] == 0 { [0; 4] } else { *pixel }).collect()
        };
        (0..frames).map(read).collect()
    }

    #[test]
    fn a_still_is_the_same_to_the_pixel() {
        for is_transparent in [false, true] {
            let mut picture = two_frames(is_transparent);
            picture.frames.truncate(1);
            assert_eq!(decoded(&encode(&picture).unwrap()), [picture.frames[0].pixels.clone()]);
        }
    }

    #[test]
    fn an_unoptimised_still_has_a_gamma_chunk_of_16_bytes() {
        let mut picture = two_frames(false);
        picture.frames.truncate(1);
        let mut plain = Vec::new();
        write(&picture, picture.palette().as_ref(), &mut plain).unwrap();
        let file = encode_unoptimised(&picture).unwrap();
        assert_eq!(file.len(), plain.len() + 16);
        assert_eq!(&file[HEADER_BYTES + 4..HEADER_BYTES + 8], b"gAMA");
        assert_eq!(decoded(&file), [picture.frames[0].pixels.clone()]);
    }

    #[test]
    fn regress_a_rectangle_is_filtered_like_the_whole_frame() {
        let mut picture = two_frames(false);
        picture.frames.truncate(1);
        let palette = picture.palette();
        let mut whole = Vec::new();
        write(&picture, palette.as_ref(), &mut whole).unwrap();
        assert_eq!(encode_part(&picture, 0, [0, 0, 4, 2], palette.as_ref()), Some(whole));
    }

    #[test]
    fn an_animation_stores_changed_rectangles() {
        let picture = two_frames(true);
        let frames = decoded(&encode(&picture).unwrap());
        assert_eq!(frames, [picture.frames[0].pixels.clone(), vec![[255; 4]]]);
    }
}
