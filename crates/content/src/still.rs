//! PNG and JPEG, decoded as a browser shows them.
//!
//! A colour profile, 16 bits per channel, more than one frame, or a rotated camera would be lost in the other formats. Such a picture is refused, and stays unchanged.

use std::io::Cursor;

use png::{BitDepth, ColorType, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::picture::{Frame, MAX_PIXELS, Picture};

/// Decodes a PNG.
///
/// # Errors
/// The file is not a PNG, is damaged or too large, or has features that the other formats would lose.
pub fn of_png(bytes: &[u8]) -> Result<Picture, String> {
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(Transformations::EXPAND | Transformations::ALPHA);
    let reported = |error: png::DecodingError| undecodable(&error.to_string());
    let header = decoder.read_header_info().map_err(reported)?;
    limited(header.width.into(), header.height.into())?;
    let mut reader = decoder.read_info().map_err(reported)?;
    let info = reader.info();
    let (width, height) = info.size();
    if info.is_animated() {
        return Err("it is an animation (APNG)".to_owned());
    }
    if info.bit_depth == BitDepth::Sixteen {
        return Err("16 bits per channel".to_owned());
    }
    let is_srgb = info.srgb.is_some();
    // 1/2.2, the default gamma.
    let is_usual = |gamma: u32| (45_000..46_000).contains(&gamma);
    if !is_srgb
        && (info.icc_profile.is_some() || info.gamma().is_some_and(|gamma| !is_usual(gamma.into_scaled())))
    {
        return Err("it has a colour profile".to_owned());
    }
    let mut data = vec![0; reader.output_buffer_size().ok_or("it is too large")?];
    let shown = reader.next_frame(&mut data).map_err(reported)?;
    let pixels: Vec<[u8; 4]> = match shown.color_type {
        ColorType::Rgba => data.as_chunks().0.to_vec(),
        ColorType::GrayscaleAlpha => {
            data.as_chunks().0.iter().map(|[gray, alpha]| [*gray, *gray, *gray, *alpha]).collect()
        }
        ColorType::Grayscale | ColorType::Rgb | ColorType::Indexed => {
            return Err(undecodable("pixels not in the requested format"));
        }
    };
    still(width, height, pixels)
}

/// Decodes a JPEG.
///
/// # Errors
/// As [`of_png`].
pub fn of_jpeg(bytes: &[u8]) -> Result<Picture, String> {
    if is_baseline_in_scans(bytes) {
        // The decoder would return wrong colours without an error.
        return Err("baseline with a scan for each component".to_owned());
    }
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGBA);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|error| undecodable(&format!("{error:?}")))?;
    let info = decoder.info().ok_or_else(|| undecodable("it has no head"))?;
    limited(info.width.into(), info.height.into())?;
    if !matches!(decoder.input_colorspace(), Some(ColorSpace::YCbCr | ColorSpace::Luma | ColorSpace::RGB)) {
        return Err("CMYK colours".to_owned());
    }
    if decoder.icc_profile().is_some() {
        return Err("it has a colour profile".to_owned());
    }
    if decoder.exif().is_some_and(|exif| !matches!(orientation(exif), None | Some(1))) {
        return Err("rotated by its Exif orientation".to_owned());
    }
    let data = decoder.decode().map_err(|error| undecodable(&format!("{error:?}")))?;
    still(info.width.into(), info.height.into(), data.as_chunks().0.to_vec())
}

/// Whether a sequential JPEG (SOF0, SOF1) has more than one scan (ITU-T T.81, annex B).
fn is_baseline_in_scans(bytes: &[u8]) -> bool {
    let (mut at, mut is_sequential, mut scans) = (2, false, 0);
    while let Some(&[0xff, marker]) = bytes.get(at..at + 2) {
        match marker {
            0xd9 => break,
            0xc0 | 0xc1 => is_sequential = true,
            0xda => scans += 1,
            _ => {}
        }
        // Fill bytes, and markers without a segment.
        at += match marker {
            0xff => 1,
            0x00 | 0x01 | 0xd0..=0xd8 => 2,
            _ => match bytes.get(at + 2..at + 4) {
                Some(&[high, low]) => 2 + usize::from(u16::from_be_bytes([high, low])),
                _ => break,
            },
        };
        if marker == 0xda {
            let coded = bytes.get(at..).unwrap_or_default();
            let is_marker = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0x00 | 0xd0..=0xd7);
            at += coded.windows(2).position(is_marker).unwrap_or(coded.len());
        }
    }
    is_sequential && scans > 1
}

fn undecodable(why: &str) -> String {
    format!("undecodable: {why}").replace(char::is_control, "?")
}

fn limited(width: u64, height: u64) -> Result<(), String> {
    match width * height {
        0 => Err("it has no pixels".to_owned()),
        area if area > MAX_PIXELS => Err(format!("more than {MAX_PIXELS} pixels")),
        _ => Ok(()),
    }
}

fn still(width: u32, height: u32, mut pixels: Vec<[u8; 4]>) -> Result<Picture, String> {
    if pixels.len() as u64 != u64::from(width) * u64::from(height) {
        return Err(undecodable("its header has another number of pixels"));
    }
    // A transparent pixel has no colour.
    pixels.iter_mut().filter(|pixel| pixel[3] == 0).for_each(|pixel| *pixel = [0; 4]);
    Ok(Picture { width, height, frames: vec![Frame { pixels, delay: 0 }], plays: 1 })
}

/// Orientation of the camera (Exif 2.32, tag 274 of the first directory), 1 for upright.
fn orientation(exif: &[u8]) -> Option<u16> {
    let is_little = match exif.get(..2)? {
        b"II" => true,
        b"MM" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = exif.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let long = |at: usize| {
        let bytes = exif.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let directory = usize::try_from(long(4)?).ok()?;
    let first = directory.checked_add(2)?;
    let mut fields = (0..usize::from(short(directory)?)).filter_map(|field| first.checked_add(12 * field));
    fields.find(|at| short(*at) == Some(274)).and_then(|at| short(at + 8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::two_frames;
    use crate::png as writer;

    /// A grey pixel that every decoder reads: baseline, one block.
    const JPEG: &[u8] = include_bytes!("still/grey.jpg");

    #[test]
    fn a_png_is_read_as_it_was_written() {
        for is_transparent in [false, true] {
            let mut picture = two_frames(is_transparent);
            picture.frames.truncate(1);
            let read = of_png(&writer::encode(&picture).unwrap()).unwrap();
            assert_eq!(read.frames[0].pixels, picture.frames[0].pixels);
        }
        let animation = of_png(&writer::encode(&two_frames(false)).unwrap());
        assert_eq!(animation, Err("it is an animation (APNG)".to_owned()));
    }

    #[test]
    fn a_jpeg_is_read_unless_it_is_rotated() {
        let picture = of_jpeg(JPEG).unwrap();
        assert_eq!((picture.width, picture.height), (8, 8));
        assert!(
            picture.frames[0].pixels.iter().all(|[red, _, _, alpha]| red.abs_diff(128) < 4 && *alpha == 255)
        );
        let exif = b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        let turned = [&JPEG[..2], exif, &JPEG[2..]].concat();
        assert_eq!(of_jpeg(&turned), Err("rotated by its Exif orientation".to_owned()));
    }

    #[test]
    fn damage_and_decompression_bombs_are_errors() {
        let mut picture = two_frames(false);
        picture.frames.truncate(1);
        let mut bomb = writer::encode(&picture).unwrap();
        bomb[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
        let sum = {
            let mut crc = flate2::Crc::new();
            crc.update(&bomb[12..29]);
            crc.sum()
        };
        bomb[29..33].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(of_png(&bomb), Err(format!("more than {MAX_PIXELS} pixels")));
        assert_eq!(writer::optimised(&bomb), None);
        for cut in [0, 1, 20, 40] {
            assert!(of_png(&bomb[..cut]).is_err());
            assert!(of_jpeg(&JPEG[..cut]).is_err());
        }
    }
}
