//! Words that a reader who knows TCP and HTTP would have to translate stay out of help, errors and documents.
//!
//! Checked are documents and the string literals of production code. Not comments and identifiers, and not words that
//! also have a legitimate use.

use super::tree;

/// Words to avoid, each with the field's word.
const WORDS: [(&str, &str); 31] = [
    ("nobody asked", "unsolicited"),
    ("nobody was asked", "unsolicited"),
    ("nobody else was", "the passive voice"),
    ("nobody can foresee", "unpredictable"),
    ("what came of", "result"),
    ("what comes of", "result"),
    ("what becomes of", "result"),
    ("asked again", "retried"),
    ("asks again", "retries"),
    ("ask again", "retry"),
    ("asked for again", "requested again, retried"),
    ("sent again", "retransmitted, resent, retried"),
    ("done again", "repeated, replayed"),
    ("so many", "N, the number of"),
    ("so long as", "while"),
    ("as many as there are", "all"),
    ("whoever", "the client, the peer, the caller"),
    ("whomever", "the client, the peer, the caller"),
    ("somebody", "a client, a host, a program"),
    ("is none of", "is not one of"),
    ("that is none", "invalid, not a"),
    ("which is none", "invalid, not a"),
    ("patience", "timeout"),
    ("given up", "timed out, abandoned"),
    ("thrown away", "dropped, discarded"),
    ("throws away", "drops, discards"),
    ("overtaken", "reordered"),
    ("overtaking", "reordering"),
    ("under way", "in progress, in flight"),
    ("beside one another", "concurrently"),
    ("processor time", "CPU time"),
];

#[test]
fn documents_use_the_words_of_the_field() {
    let mut files = tree::files("docs", &[".md"]);
    files.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(str::to_owned));
    let complaints: Vec<String> = files
        .iter()
        .flat_map(|file| {
            let text = tree::text(file);
            // Names in code stay as they are.
            let prose: String = text.split('`').step_by(2).collect();
            complaints(file, &prose)
        })
        .collect();
    tree::expect_none("Words to replace (CONTRIBUTING.md, \"Words\"):", &complaints);
}

#[test]
fn texts_of_the_program_use_the_words_of_the_field() {
    let sources = tree::files("crates", &[".rs"]);
    let sources = sources.iter().filter(|file| file.contains("/src/"));
    let complaints: Vec<String> = sources
        .flat_map(|file| {
            let text = tree::text(file);
            let production = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let help = if file.starts_with("crates/roundtrip/src/cli") {
                comments(production)
            } else {
                String::new()
            };
            complaints(file, &(literals(production) + &help))
        })
        .collect();
    tree::expect_none("Words to replace (CONTRIBUTING.md, \"Words\"):", &complaints);
}

fn complaints(file: &str, text: &str) -> Vec<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let found = WORDS.iter().filter_map(|(word, instead)| {
        let at = text.match_indices(word).find(|(at, _)| is_word(&text, *at, word.len()))?.0;
        let context: String = text[at..].chars().take(60).collect();
        Some(format!("{file}: \"{context}\": {instead}"))
    });
    found.collect()
}

/// Whether the match is not within a longer word.
fn is_word(text: &str, at: usize, length: usize) -> bool {
    let is_letter =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + length..].chars().next())
}

/// Doc comments, which clap makes into help.
fn comments(source: &str) -> String {
    let lines = source.lines().filter_map(|line| line.trim().strip_prefix("///"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The string literals of Rust source, each after a mark; without the arguments of formats.
fn literals(source: &str) -> String {
    let mut texts = String::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (before, here) = rest.split_at(at);
        rest = if here.starts_with("//") {
            here.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(raw) = here.strip_prefix('"').filter(|_| before.ends_with(['r', '#'])) {
            let marks = before.len() - before.trim_end_matches('#').len();
            let end = format!("\"{}", "#".repeat(marks));
            let (literal, after) = raw.split_once(&end).unwrap_or((raw, ""));
            texts += &format!("§ {literal} ");
            after
        } else if let Some(text) = here.strip_prefix('"') {
            let end = end_of_literal(text);
            texts += &format!("§ {} ", text[..end].replace("\\\n", " ").replace("\\n", " "));
            text.get(end + 1..).unwrap_or_default()
        } else if here.starts_with("'\"'") || here.starts_with("'/'") {
            &here[3..]
        } else {
            &here[1..]
        };
    }
    let pieces = texts.split('{').map(|piece| piece.split_once('}').map_or(piece, |(_, after)| after));
    pieces.collect::<Vec<_>>().join("{}")
}

fn end_of_literal(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    text.len()
}

#[test]
fn words_in_literals_are_found_and_those_in_comments_and_code_are_not() {
    let source = "// whoever\nlet patience = '\"'; // \"given up\"\nlet text = \"{patience} the \\\n    whoever \\\"x\\\"\"; \
                  r#\"so \"many\"#; (\"sent\", \"again\")";
    let complaints = complaints("a.rs", &literals(source));
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints[0].starts_with("a.rs: \"whoever"), "{complaints:?}");
    assert_eq!(self::complaints("a.md", "It gave a packet\nup, so\n  many. Somebodys.").len(), 1);
}
