//! Shapes and text to SVG, as plain as the format allows: no scripts, no fonts of its own, two decimals. A page's script can
//! zoom an interactive picture ([`Svg::interactive`]).
//!
//! Shapes written first are below later ones.

use std::fmt::Write;

use super::palette;
use crate::report::html::escaped;

/// A point on the picture, in pixels from the top left.
pub type Point = (f64, f64);

/// A picture being drawn.
pub struct Svg {
    width: f64,
    height: f64,
    clips: usize,
    /// Whether a page's script may zoom it.
    is_interactive: bool,
    body: String,
}

/// Line style.
#[derive(Clone, Copy, Debug)]
pub struct Stroke<'a> {
    /// `#rrggbb`.
    pub colour: &'a str,
    /// In pixels.
    pub width: f64,
    /// Lengths of dashes and gaps; empty for an unbroken line.
    pub dashes: &'a str,
}

impl<'a> Stroke<'a> {
    /// An unbroken line.
    pub const fn solid(colour: &'a str, width: f64) -> Self {
        Self { colour, width, dashes: "" }
    }
}

/// Font of a text.
#[derive(Clone, Copy, Debug)]
pub struct Font<'a> {
    /// In pixels.
    pub size: f64,
    /// `#rrggbb`.
    pub colour: &'a str,
    /// Part of the text at its position.
    pub anchor: Anchor,
    /// Bold.
    pub bold: bool,
    /// Rotation in degrees, clockwise, about its position.
    pub turned: f64,
    /// On a halo of white, so that it can be read over lines.
    pub halo: bool,
}

/// Part of a text at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

impl Anchor {
    /// Value of `text-anchor`.
    const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

impl<'a> Font<'a> {
    /// Plain text of one size.
    pub const fn new(size: f64, colour: &'a str, anchor: Anchor) -> Self {
        Self { size, colour, anchor, bold: false, turned: 0.0, halo: false }
    }
}

/// Layout of the title and the lines above a picture: sizes and baselines in pixels.
#[derive(Clone, Copy, Debug)]
pub struct Heading {
    title: (f64, f64),
    /// The first line below the title; others follow `pitch` apart.
    line: (f64, f64),
    pitch: f64,
}

impl Heading {
    /// For several small panels.
    pub const SMALL: Self = Self { title: (17.0, 28.0), line: (12.0, 48.0), pitch: 17.0 };
    /// For packets in panels below one another.
    pub const MEDIUM: Self = Self { title: (20.0, 34.0), line: (13.5, 57.0), pitch: 19.0 };
    /// For one large picture.
    pub const LARGE: Self = Self { title: (21.0, 38.0), line: (13.5, 62.0), pitch: 19.0 };
}

impl Svg {
    /// An empty picture on white.
    pub fn new(width: f64, height: f64) -> Self {
        let mut svg = Self { width, height, clips: 0, is_interactive: false, body: String::new() };
        svg.rectangle((0.0, 0.0), (width, height), "#ffffff");
        svg
    }

    /// An empty picture on white that a page's script can zoom horizontally, in the output of [`Svg::within`], while it
    /// moves the shapes of [`Svg::at_zoomed_x`]. Without a script it shows all of it.
    pub fn interactive(width: f64, height: f64) -> Self {
        Self { is_interactive: true, ..Self::new(width, height) }
    }

    /// Whether a page's script may zoom it: shapes in it must bear to be stretched.
    pub const fn is_interactive(&self) -> bool {
        self.is_interactive
    }

    /// An empty picture on a page, whose style sheet has the font and colours such as `var(--ink)`.
    pub const fn in_page(width: f64, height: f64) -> Self {
        Self { width, height, clips: 0, is_interactive: false, body: String::new() }
    }

    /// A filled rectangle from its top left corner.
    pub fn rectangle(&mut self, (x, y): Point, (width, height): (f64, f64), fill: &str) {
        self.put(format_args!(
            r#"<rect x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}" fill="{fill}"/>"#
        ));
    }

    /// Draws on a part of the picture: positions, and percentages, are relative to it.
    pub fn inset(&mut self, (x, y): Point, (width, height): (f64, f64), draw: impl FnOnce(&mut Self)) {
        self.put(format_args!(
            r#"<svg x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}" overflow="visible">"#
        ));
        draw(self);
        self.put(format_args!("</svg>"));
    }

    /// A filled rectangle with its left edge and width in percent of the picture's width.
    pub fn rectangle_at_percent(&mut self, (x, width): (f64, f64), (y, height): (f64, f64), fill: &str) {
        self.put(format_args!(
            r#"<rect x="{x:.3}%" y="{y:.2}" width="{width:.3}%" height="{height}" fill="{fill}"/>"#
        ));
    }

    /// A vertical line at a percentage of the picture's width.
    pub fn vertical_line_at_percent(
        &mut self,
        x: f64,
        (top, bottom): (f64, f64),
        colour: &str,
        dashes: &str,
    ) {
        let stroke = attributes(Stroke { colour, width: 1.0, dashes });
        self.put(format_args!(
            r#"<line x1="{x:.3}%" x2="{x:.3}%" y1="{top:.2}" y2="{bottom:.2}" {stroke}/>"#
        ));
    }

    /// A horizontal line between percentages of the picture's width.
    pub fn horizontal_line_at_percent(&mut self, (from, to): (f64, f64), y: f64, colour: &str) {
        let stroke = attributes(Stroke::solid(colour, 1.5));
        self.put(format_args!(r#"<line x1="{from:.3}%" x2="{to:.3}%" y1="{y:.2}" y2="{y:.2}" {stroke}/>"#));
    }

    /// One line of text at a percentage of the picture's width, `shift` pixels to the right. A narrow page omits the
    /// detail.
    pub fn text_at_percent(
        &mut self,
        (x, shift): (f64, f64),
        y: f64,
        (text, font): (&str, Font<'_>),
        (detail, faint): (&str, Font<'_>),
    ) {
        let (size, anchor, text, detail) = (font.size, font.anchor.name(), escaped(text), escaped(detail));
        let [colour, faint] = [font.colour, faint.colour].map(text_colour);
        let detail = if detail.is_empty() {
            detail
        } else {
            format!(r#" <tspan class="detail" {faint}>{detail}</tspan>"#)
        };
        self.put(format_args!(
            r#"<text x="{x:.3}%" dx="{shift}" y="{y:.2}" font-size="{size}" {colour} text-anchor="{anchor}">{text}{detail}</text>"#
        ));
    }

    /// Clips the output of `draw` to a rectangle, which a script can zoom if the picture is interactive.
    pub fn within(&mut self, (x, y): Point, (width, height): (f64, f64), draw: impl FnOnce(&mut Self)) {
        if self.is_interactive {
            // The same coordinates inside as outside.
            self.put(format_args!(
                r#"<svg class="data" x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{x} {y} {width} {height}" preserveAspectRatio="none">"#
            ));
            draw(self);
            self.put(format_args!("</svg>"));
            return;
        }
        self.clips += 1;
        let name = format!("clip{}", self.clips);
        self.put(format_args!(
            r#"<clipPath id="{name}"><rect x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}"/></clipPath>"#
        ));
        self.put(format_args!(r#"<g clip-path="url(#{name})">"#));
        draw(self);
        self.put(format_args!("</g>"));
    }

    /// Adds a tooltip to the output of `draw`.
    pub fn with_tooltip(&mut self, tooltip: &str, draw: impl FnOnce(&mut Self)) {
        self.put(format_args!("<g><title>{}</title>", escaped(tooltip)));
        draw(self);
        self.put(format_args!("</g>"));
    }

    /// Marks the output of `draw` for the script of an interactive picture, at a part of the zoomed width (0 to 1). Any
    /// other picture gets the output alone.
    pub fn at_zoomed_x(&mut self, class: &str, part: f64, draw: impl FnOnce(&mut Self)) {
        if !self.is_interactive {
            return draw(self);
        }
        self.put(format_args!(r#"<g class="{class}" data-t="{part:.6}">"#));
        draw(self);
        self.put(format_args!("</g>"));
    }

    /// Upright lines of one style, each with a tooltip: position, lower and upper end, words.
    pub fn vertical_lines(
        &mut self,
        stroke: Stroke<'_>,
        lines: impl IntoIterator<Item = (f64, (f64, f64), String)>,
    ) {
        self.put(format_args!("<g {}>", attributes(stroke)));
        for (x, (low, high), tooltip) in lines {
            let tooltip = escaped(&tooltip);
            self.put(format_args!(r#"<path d="M{x:.2} {low:.1}V{high:.1}"><title>{tooltip}</title></path>"#));
        }
        self.put(format_args!("</g>"));
    }

    /// A line through points; nothing for fewer than two.
    pub fn line(&mut self, points: &[Point], stroke: Stroke<'_>) {
        if points.len() < 2 {
            return;
        }
        let stroke = attributes(stroke);
        self.put(format_args!(r#"<path d="{}" fill="none" {stroke}/>"#, outline(points, false)));
    }

    /// Closed outlines filled together: an overlap of two of them is a hole.
    pub fn area(&mut self, outlines: &[Vec<Point>], fill: &str) {
        if outlines.is_empty() {
            return;
        }
        let path: String = outlines.iter().map(|points| outline(points, true)).collect();
        self.put(format_args!(r#"<path d="{path}" fill="{fill}" fill-rule="evenodd"/>"#));
    }

    /// A filled polygon with an outline.
    pub fn polygon(&mut self, points: &[Point], fill: &str, stroke: Stroke<'_>) {
        let stroke = attributes(stroke);
        self.put(format_args!(r#"<path d="{}" fill="{fill}" {stroke}/>"#, outline(points, true)));
    }

    /// A dot.
    pub fn dot(&mut self, (x, y): Point, radius: f64, fill: &str, stroke: Stroke<'_>) {
        let stroke = attributes(stroke);
        self.put(format_args!(r#"<circle cx="{x:.2}" cy="{y:.2}" r="{radius:.2}" fill="{fill}" {stroke}/>"#));
    }

    /// One line of text, its baseline at the position.
    pub fn text(&mut self, (x, y): Point, text: &str, font: Font<'_>) {
        let Font { size, colour, anchor, bold, turned, halo } = font;
        let anchor = anchor.name();
        let weight = if bold { r#" font-weight="600""# } else { "" };
        let turn = if turned == 0.0 {
            String::new()
        } else {
            format!(r#" transform="rotate({turned:.1} {x:.2} {y:.2})""#)
        };
        let halo = if halo {
            r##" stroke="#ffffff" stroke-width="3.5" stroke-linejoin="round" paint-order="stroke""##
        } else {
            ""
        };
        let text = escaped(text);
        let colour = text_colour(colour);
        self.put(format_args!(
            r#"<text x="{x:.2}" y="{y:.2}" font-size="{size}" {colour} text-anchor="{anchor}"{weight}{turn}{halo}>{text}</text>"#
        ));
    }

    /// A title and the lines below it, beginning at `left`.
    pub fn heading(&mut self, left: f64, heading: Heading, title: &str, lines: &[&str]) {
        let Heading { title: (size, baseline), line: (line_size, mut below), pitch } = heading;
        let bold = Font { bold: true, ..Font::new(size, palette::INK, Anchor::Start) };
        self.text((left, baseline), title, bold);
        for line in lines {
            self.text((left, below), line, Font::new(line_size, palette::GREY, Anchor::Start));
            below += pitch;
        }
    }

    /// The file. `title` and `description` are for screen readers.
    pub fn finish(self, title: &str, description: &str) -> String {
        let Self { width, height, clips: _, is_interactive: _, body } = self;
        let (title, description) = (escaped(title), escaped(description));
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="{FONTS}" role="img">
<title>{title}</title>
<desc>{description}</desc>
{body}</svg>
"#
        )
    }

    /// The file or element of an interactive picture. Its script finds the position and width of the zoomed part, and the
    /// time that it spans, in milliseconds, as data. `title` is for screen readers.
    pub fn finish_interactive(self, title: &str, (left, width): (f64, f64), span_ms: f64) -> String {
        let Self { width: whole, height, clips: _, is_interactive: _, body } = self;
        let title = escaped(title);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" class="plot sequence" viewBox="0 0 {whole} {height}" font-family="{FONTS}" role="img" aria-label="{title}" data-left="{left}" data-width="{width}" data-span="{span_ms:.6}">
{INTERACTIVE_STYLE}
{body}</svg>
"#
        )
    }

    /// The element for a page, as wide as the page's column, of these classes. `title` is for screen readers.
    pub fn element(self, title: &str, class: &str) -> String {
        let Self { width, height, clips: _, is_interactive: _, body } = self;
        let title = escaped(title);
        format!(
            r#"<div class="scroll">
<svg class="{class}" viewBox="0 0 {width} {height}" width="100%" role="img" aria-label="{title}">
{body}</svg>
</div>
"#
        )
    }

    /// The element for a page, as wide as the page's column, with unscaled text: positions are percentages. `title` is
    /// for screen readers.
    pub fn fluid_element(self, title: &str) -> String {
        let Self { width: _, height, clips: _, is_interactive: _, body } = self;
        let title = escaped(title);
        format!(
            "<svg width=\"100%\" height=\"{height:.0}\" role=\"img\" aria-label=\"{title}\">\n{body}</svg>\n"
        )
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.body, "{element}").expect("text grows without fail");
    }
}

/// Style of an interactive picture that is a file of its own. A page that has it in its style sheet leaves it out.
pub const INTERACTIVE_STYLE: &str =
    "<style>.data *{vector-effect:non-scaling-stroke}.hidden{display:none}</style>";

/// Fonts of a file.
const FONTS: &str = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

/// A text's colour as an attribute: a strict Content-Security-Policy forbids styles.
fn text_colour(colour: &str) -> String {
    format!(r#"fill="{colour}""#)
}

fn attributes(stroke: Stroke<'_>) -> String {
    let Stroke { colour, width, dashes } = stroke;
    let dashes = if dashes.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dashes}""#) };
    format!(r#"stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"{dashes}"#)
}

fn outline(points: &[Point], closed: bool) -> String {
    let mut path = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let letter = if index == 0 { 'M' } else { 'L' };
        write!(path, "{letter}{x:.2} {y:.2}").expect("text grows without fail");
    }
    if closed {
        path.push('Z');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_is_a_title_and_lines_below_it() {
        let mut svg = Svg::new(10.0, 20.0);
        svg.heading(5.0, Heading::SMALL, "t", &["one", "two"]);
        let text = svg.finish("", "");
        assert!(text.contains(r#"y="28.00" font-size="17""#) && text.contains(r#"font-weight="600">t<"#));
        assert!(text.contains(r#"y="48.00" font-size="12""#) && text.contains(r#"y="65.00" font-size="12""#));
    }

    #[test]
    fn a_picture_is_one_element_and_text_in_it_is_escaped() {
        let mut svg = Svg::new(10.0, 20.0);
        svg.text((1.0, 2.0), "a < b & c", Font::new(12.0, "#000000", Anchor::Start));
        svg.line(&[(0.0, 0.0), (1.0, 1.0)], Stroke::solid("#000000", 1.0));
        let text = svg.finish("t", "d");
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
        assert!(text.contains("a &lt; b &amp; c") && text.contains("M0.00 0.00L1.00 1.00"));
    }
}
