//! Rasterises SVG plots as PNG.
//!
//! Text is rendered with the fonts of this host; without fonts, plots have no text, and a warning is printed.

use std::io;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};

/// Pixels per unit of the SVG: 1,920 across.
const SCALE: f32 = 2.0;
/// Sans-serif font families that systems have, in order of preference.
const FACES: [&str; 6] = ["DejaVu Sans", "Noto Sans", "Liberation Sans", "Arial", "Helvetica", "FreeSans"];

/// Rasteriser with the fonts of this host.
pub struct Raster(usvg::Options<'static>);

impl Raster {
    /// Loads the fonts; warns on standard error if there are none.
    pub fn new() -> Self {
        let options = options();
        if options.fontdb.is_empty() {
            eprintln!("{NO_FONTS}");
        }
        Self(options)
    }

    /// Rasterises one plot as PNG.
    pub fn image(&self, svg: &str) -> io::Result<Vec<u8>> {
        png(svg, &self.0)
    }
}

const NO_FONTS: &str =
    "roundtrip: no fonts are installed: plots as PNG have no text; install some, or write SVG";

fn options() -> usvg::Options<'static> {
    let mut options = usvg::Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    let is_installed =
        |name: &&str| fonts.faces().any(|face| face.families.iter().any(|(family, _)| family == *name));
    let preferred = FACES.iter().find(|name| is_installed(name)).map(|name| (*name).to_owned());
    let any =
        |fonts: &fontdb::Database| fonts.faces().find_map(|face| Some(face.families.first()?.0.clone()));
    if let Some(family) = preferred.or_else(|| any(fonts)) {
        fonts.set_sans_serif_family(family);
    }
    options
}

fn png(svg: &str, options: &usvg::Options<'_>) -> io::Result<Vec<u8>> {
    let tree = usvg::Tree::from_str(svg, options).map_err(io::Error::other)?;
    let size =
        tree.size().to_int_size().scale_by(SCALE).and_then(|size| Pixmap::new(size.width(), size.height()));
    let mut pixels = size.ok_or_else(|| io::Error::other("the plot has no size"))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    // The plot's background covers all of it: no pixel is transparent, and no colour is premultiplied.
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels.data())?;
    writer.finish()?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_the_size_and_the_colours_of_its_svg() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 30 20\"><style>.paper{fill:#fff}.stall{fill:#f00}\
                   </style><rect class=\"paper\" width=\"30\" height=\"20\"/><rect class=\"stall\" width=\"3\" height=\"3\"/></svg>";
        let image = png(svg, &usvg::Options::default()).unwrap();
        let mut reader = png::Decoder::new(io::Cursor::new(image)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((frame.width, frame.height), (60, 40));
        assert_eq!((&pixels[..4], &pixels[pixels.len() - 4..]), (&[255, 0, 0, 255][..], &[255; 4][..]));
    }
}
