//! JPEG at a quality (ITU-T T.81): progressive in two scans, chroma at half the resolution, and Huffman tables optimised for the picture.
//!
//! Not perceptually optimised. Transparent pictures and animations have no JPEG.

use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};

use crate::picture::Picture;

/// Returns the picture as a JPEG at a quality of 1 to 100, on the scale of the Independent JPEG Group's library.
pub fn encode(picture: &Picture, quality: u8) -> Option<Vec<u8>> {
    encoded(picture, quality, |encoder| encoder.set_progressive_scans(2))
}

fn encoded(picture: &Picture, quality: u8, set: impl Fn(&mut Encoder<&mut Vec<u8>>)) -> Option<Vec<u8>> {
    let [still] = &picture.frames[..] else { return None };
    let (width, height) = (u16::try_from(picture.width).ok()?, u16::try_from(picture.height).ok()?);
    if picture.is_transparent() {
        return None;
    }
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, quality);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    encoder.set_optimized_huffman_tables(true);
    set(&mut encoder);
    encoder.encode(still.pixels.as_flattened(), width, height, ColorType::Rgba).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Frame;
    use crate::picture::tests::two_frames;
    use crate::still;

    /// Waves of colour on a canvas that is not a multiple of the block size.
    fn waves() -> Picture {
        let (width, height) = (45_u8, 37_u8);
        let pixel = |x: u8, y: u8| {
            let wave = |turn: f32| (f32::from(x) / 7.0 + turn * f32::from(y) / 9.0).sin() * 100.0 + 128.0;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "28 to 228")]
            [wave(0.3) as u8, wave(1.0) as u8, wave(-0.5) as u8, 255]
        };
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| pixel(x, y))).collect();
        let frames = vec![Frame { pixels, delay: 0 }];
        Picture { width: width.into(), height: height.into(), frames, plays: 1 }
    }

    /// The mean squared difference.
    fn error(one: &Picture, other: &Picture) -> f64 {
        let [one, other] = [one, other].map(|picture| picture.frames[0].pixels.as_flattened());
        assert_eq!(one.len(), other.len());
        let squares = one.iter().zip(other).map(|(one, other)| f64::from(one.abs_diff(*other)).powi(2));
        squares.sum::<f64>() / one.len() as f64
    }

    #[test]
    fn a_higher_quality_is_closer_to_the_original_and_larger() {
        let picture = waves();
        let [low, middle, high] = [10, 60, 95].map(|quality| {
            let file = encode(&picture, quality).unwrap();
            (file.len(), error(&picture, &still::of_jpeg(&file).unwrap()))
        });
        assert!(low.0 < middle.0 && middle.0 < high.0, "{low:?} {middle:?} {high:?}");
        assert!(low.1 > middle.1 && middle.1 > high.1, "{low:?} {middle:?} {high:?}");
        assert!(high.1 < 8.0 && low.1 < 250.0, "{low:?} {middle:?} {high:?}");
    }

    /// Baseline files may hold one scan for each component (ITU-T T.81, F.1.1): this encoder writes them with optimised tables.
    #[test]
    fn regress_a_baseline_file_with_a_scan_for_each_component_is_refused() {
        let picture = waves();
        let baseline = |is_optimised: bool| {
            let set = |encoder: &mut Encoder<&mut Vec<u8>>| {
                encoder.set_progressive(false);
                encoder.set_optimized_huffman_tables(is_optimised);
            };
            encoded(&picture, 95, set).unwrap()
        };
        assert_eq!(
            still::of_jpeg(&baseline(true)),
            Err("baseline with a scan for each component".to_owned())
        );
        let difference = error(&picture, &still::of_jpeg(&baseline(false)).unwrap());
        assert!(difference < 8.0, "{difference}");
    }

    #[test]
    fn animations_and_transparent_pictures_have_no_jpeg() {
        assert_eq!(encode(&two_frames(false), 50), None);
        let mut still = two_frames(true);
        still.frames.truncate(1);
        assert_eq!(encode(&still, 50), None);
    }
}
