//! Text escaped for HTML.

/// `text` with HTML's special characters escaped, for elements and for attributes in double quotes; without control characters.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' | '\t' | '\r' => out.push(letter),
            // Escape sequences of file names and header fields would reach a terminal that prints the page.
            control if control.is_control() => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

/// Style sheet of every page: of reports, and of the laboratory.
const STYLE: &str = include_str!("style.css");

/// A page in one file, which needs no network.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Title of the window.
    pub title: &'a str,
    /// Heading of the page.
    pub heading: &'a str,
    /// HTML below the heading.
    pub lead: &'a str,
    /// HTML of the contents.
    pub main: &'a str,
    /// HTML after the contents: a footer, a script.
    pub end: &'a str,
}

impl Document<'_> {
    /// The file's text.
    pub fn text(&self) -> String {
        let Self { title, heading, lead, main, end } = self;
        format!(
            "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"color-scheme\" content=\"light dark\">
<title>{title} - Roundtrip</title>
<style>
{STYLE}</style>
</head>
<body>
<header>
<p class=\"brand\">Roundtrip</p>
<h1>{heading}</h1>
{lead}</header>
<main>
{main}</main>
{end}</body>
</html>
",
            title = escaped(title),
            heading = escaped(heading),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn special_characters_in_names_are_escaped() {
        assert_eq!(escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
