//! AVIF encoder (rav1e) with a quality: the format that current browsers accept for photographs.
//!
//! Lossless compression is left out, because AVIF encoders do it badly; so are animations.

use ravif::{Encoder, Img, RGBA8};

use crate::picture::Picture;

/// Encodes the picture as AVIF at a quality of 1 to 100; `None` for an animation.
pub fn encode(picture: &Picture, quality: u8) -> Option<Vec<u8>> {
    let [still] = &picture.frames[..] else { return None };
    let pixels: Vec<RGBA8> = still
        .pixels
        .iter()
        .map(|[red, green, blue, alpha]| RGBA8::new(*red, *green, *blue, *alpha))
        .collect();
    let encoder = Encoder::new()
        .with_quality(quality.into())
        .with_alpha_quality(quality.into())
        .with_speed(SPEED)
        .with_num_threads(Some(1));
    let image = Img::new(&pixels[..], picture.width as usize, picture.height as usize);
    encoder.encode_rgba(image).ok().map(|encoded| encoded.avif_file)
}

/// Encoder speed, 1 to 10: five seconds for a million pixels; 4 takes three times as long and saves a fifth.
const SPEED: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::two_frames;

    #[test]
    fn stills_are_encoded_and_animations_are_not() {
        let mut picture = two_frames(true);
        assert_eq!(encode(&picture, 80), None);
        picture.frames.truncate(1);
        let file = encode(&picture, 80).unwrap();
        assert_eq!(&file[4..12], b"ftypavif");
    }
}
