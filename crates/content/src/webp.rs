//! WebP (RFC 9649) of stills and animations, by the reference encoder: lossless, or at a quality.
//!
//! The caller chooses between the two.

use webp::{AnimEncoder, AnimFrame, Encoder, PixelLayout, WebPConfig};

use crate::picture::Picture;

/// Maximum width and height of the format, in pixels.
const MAX_SIDE: u32 = 16_383;

/// The picture as lossless WebP; `None` where it is too large for the format.
pub fn encode(picture: &Picture) -> Option<Vec<u8>> {
    let mut config = WebPConfig::new().ok()?;
    config.lossless = 1;
    config.quality = 100.0;
    write(picture, config)
}

/// The picture as a WebP at a quality of 1 to 100.
pub fn encode_lossy(picture: &Picture, quality: u8) -> Option<Vec<u8>> {
    let mut config = WebPConfig::new().ok()?;
    config.quality = quality.into();
    write(picture, config)
}

fn write(picture: &Picture, mut config: WebPConfig) -> Option<Vec<u8>> {
    if picture.width > MAX_SIDE || picture.height > MAX_SIDE {
        return None;
    }
    config.method = 6;
    if !picture.is_animation() {
        let pixels = picture.frames.first()?.pixels.as_flattened();
        let encoder = Encoder::new(pixels, PixelLayout::Rgba, picture.width, picture.height);
        return encoder.encode_advanced(&config).ok().map(|file| file.to_vec());
    }
    let mut encoder = AnimEncoder::new(picture.width, picture.height, &config);
    encoder.set_loop_count(i32::try_from(picture.plays).unwrap_or(0));
    let mut milliseconds = 0;
    for frame in &picture.frames {
        let (pixels, width, height) = (frame.pixels.as_flattened(), picture.width, picture.height);
        encoder.add_frame(AnimFrame::from_rgba(pixels, width, height, milliseconds));
        // A frame without a delay is shown for the minimum time.
        milliseconds += 10 * i32::from(frame.delay.max(1));
    }
    encoder.try_encode().ok().map(|file| file.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::two_frames;

    #[test]
    fn stills_and_animations_are_the_same_to_the_pixel() {
        let mut picture = two_frames(true);
        let file = encode(&picture).unwrap();
        let animation = webp::AnimDecoder::new(&file).decode().unwrap();
        let shown: Vec<_> = animation
            .get_frames(0..animation.len())
            .unwrap()
            .iter()
            .map(|frame| frame.get_image().to_vec())
            .collect();
        let frames: Vec<_> =
            picture.frames.iter().map(|frame| frame.pixels.as_flattened().to_vec()).collect();
        assert_eq!(shown, frames);
        picture.frames.truncate(1);
        let file = encode(&picture).unwrap();
        assert_eq!(&webp::Decoder::new(&file).decode().unwrap()[..], frames[0]);
    }
}
