//! Colours that remain distinct with colour blindness, on paper and on the screen.
//!
//! Viridis (Smith and van der Walt 2015; public domain, CC0) rises evenly in lightness. It preserves its order for every
//! kind of colour blindness and in grey. The code that uses a colour gives it a meaning.

/// Text and frames.
pub const INK: &str = "#1a1a1a";
/// Secondary text.
pub const GREY: &str = "#5f6670";
/// Grids.
pub const FAINT: &str = "#d5d9de";
/// Highlights: Okabe and Ito's vermilion.
pub const ACCENT: &str = "#d55e00";

/// The colours of lines and areas, besides the accent (Okabe and Ito 2002).
pub const BLUE: &str = "#0072b2";
/// See [`BLUE`].
pub const GREEN: &str = "#009e73";
/// See [`BLUE`].
pub const ORANGE: &str = "#e69f00";
/// See [`BLUE`].
pub const PURPLE: &str = "#a3488b";
/// See [`BLUE`].
pub const SKY: &str = "#56b4e9";
/// See [`BLUE`].
pub const YELLOW: &str = "#f0e442";
/// A dark red, apart from the accent (Tol 2021).
pub const WINE: &str = "#882255";

/// Viridis at eleven even steps.
const VIRIDIS: [[f64; 3]; 11] = [
    [68.0, 1.0, 84.0],
    [72.0, 36.0, 117.0],
    [65.0, 68.0, 135.0],
    [53.0, 95.0, 141.0],
    [42.0, 120.0, 142.0],
    [33.0, 145.0, 140.0],
    [34.0, 168.0, 132.0],
    [68.0, 191.0, 112.0],
    [122.0, 209.0, 81.0],
    [189.0, 223.0, 38.0],
    [253.0, 231.0, 37.0],
];

/// The colour at `position` from light (0) to dark (1), mixed with a share of white (0 for none).
pub fn sequential(position: f64, white: f64) -> String {
    let at = (1.0 - position.clamp(0.0, 1.0)) * (VIRIDIS.len() - 1) as f64;
    // Between 0 and 10.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let below = (at.floor() as usize).min(VIRIDIS.len() - 2);
    let part = at - below as f64;
    let channel = |index: usize| {
        let mixed = VIRIDIS[below][index] * (1.0 - part) + VIRIDIS[below + 1][index] * part;
        mixed * (1.0 - white) + 255.0 * white
    };
    rgb([channel(0), channel(1), channel(2)])
}

fn rgb(channels: [f64; 3]) -> String {
    let [red, green, blue] = channels.map(|channel| channel.round().clamp(0.0, 255.0));
    format!("#{:02x}{:02x}{:02x}", byte(red), byte(green), byte(blue))
}

/// A channel, known to be from 0 to 255.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn byte(channel: f64) -> u8 {
    channel as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_runs_from_yellow_to_violet_and_white_lightens_it() {
        assert_eq!(sequential(0.0, 0.0), "#fde725");
        assert_eq!(sequential(1.0, 0.0), "#440154");
        assert_eq!(sequential(2.0, 1.0), "#ffffff");
    }
}
