//! Command lines of `roundtrip` in Markdown, split into words as a shell does.
//!
//! In a fenced or indented block, a line with the prompt `$ ` or `# ` is typed; in a block without prompts, every line
//! that begins with `roundtrip`. In prose, inline code that begins with `roundtrip ` is a command, too. Quotes, `\` at the end of a line, pipes and redirections are understood, substitutions stay text.

use std::fs;
use std::path::{Path, PathBuf};

/// A command in a document.
#[derive(Clone, Debug)]
pub(crate) struct DocumentedCommand {
    /// The document, relative to the root, and the line.
    pub(crate) location: String,
    /// The words, without environment and `sudo`; the first is `roundtrip`.
    pub(crate) words: Vec<String>,
    /// Whether it is a whole command (in a block), not a mention in prose.
    pub(crate) is_whole: bool,
}

/// Every command of `README.md` and `docs/**/*.md`, by document; not of `docs/reference`, which is generated.
pub(crate) fn all() -> Vec<DocumentedCommand> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("README.md")];
    collect(&root.join("docs"), &mut files);
    files.sort();
    let read = |file: &PathBuf| {
        let name = file.strip_prefix(&root).unwrap().display().to_string();
        commands(&name, &fs::read_to_string(file).unwrap())
    };
    files.iter().flat_map(read).collect()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("reference") {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

/// Returns the commands of one document, in order.
pub(crate) fn commands(name: &str, text: &str) -> Vec<DocumentedCommand> {
    let mut found = Vec::new();
    let (mut block, mut prose) = (Vec::new(), String::new());
    let (mut is_fenced, mut start) = (false, 0);
    for (number, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence {
            if is_fenced {
                parse_block(&block, &format!("{name}:{start}"), &mut found);
            }
            (is_fenced, start) = (!is_fenced, number + 1);
            block.clear();
        } else if is_fenced {
            block.push(line);
        } else if let Some(indented) = line.strip_prefix("    ") {
            parse_block(&[indented], &format!("{name}:{}", number + 1), &mut found);
        }
        // A paragraph ends with an empty line; inline code may be wrapped within it.
        if is_fence || is_fenced || line.trim().is_empty() {
            parse_prose(&prose, &format!("{name}:{number}"), &mut found);
            prose.clear();
        } else {
            prose += line;
            prose += "\n";
        }
    }
    parse_prose(&prose, name, &mut found);
    found
}

fn parse_block(block: &[&str], location: &str, found: &mut Vec<DocumentedCommand>) {
    let prompted = block.iter().any(|line| prompt(line).is_some());
    let mut lines = block.iter();
    while let Some(line) = lines.next() {
        let Some(mut typed) = (if prompted { prompt(line) } else { Some(*line) }).map(str::to_owned) else {
            continue;
        };
        while typed.ends_with('\\') {
            typed.pop();
            typed += lines.next().unwrap_or(&"").trim_start();
        }
        for words in split_line(&typed) {
            found.extend(parse_command(words, location, true));
        }
    }
}

/// Returns the command after `$ `, `# ` or `host$ `.
fn prompt(line: &str) -> Option<&str> {
    let (host, typed) = line.trim_start().split_once(['$', '#'])?;
    let is_host = host.chars().all(|letter| letter.is_ascii_alphanumeric());
    let is_command = |typed: &&str| !typed.starts_with(['#', '/', '!', '(', '{']);
    typed.strip_prefix(' ').filter(|_| is_host).filter(is_command)
}

fn parse_prose(prose: &str, location: &str, found: &mut Vec<DocumentedCommand>) {
    for code in prose.split('`').skip(1).step_by(2) {
        if code.starts_with("roundtrip ") {
            for words in split_line(&code.replace('\n', " ")).into_iter().take(1) {
                found.extend(parse_command(words, location, false));
            }
        }
    }
}

/// Returns the command without what precedes `roundtrip`, if it is one.
fn parse_command(words: Vec<String>, location: &str, is_whole: bool) -> Option<DocumentedCommand> {
    let words = normalise_cargo_run(words);
    // Environment, sudo, and programs that run another.
    let mut before = words.iter().take_while(|word| *word != "roundtrip");
    let prefix = |word: &String| {
        word.contains('=')
            || ["sudo", "ip", "netns", "exec", "time", "chrt", "-f", "1", "$end", "users", "server"]
                .contains(&word.as_str())
    };
    let count = before.by_ref().filter(|word| prefix(word)).count();
    let at = words.iter().position(|word| word == "roundtrip")?;
    (at == count && words.len() > at + 1).then(|| DocumentedCommand {
        location: location.to_owned(),
        words: words[at..].to_vec(),
        is_whole,
    })
}

/// `cargo run --release -- VERB` as `roundtrip VERB`.
fn normalise_cargo_run(words: Vec<String>) -> Vec<String> {
    let is_run = words.len() > 4 && words[..4] == ["cargo", "run", "--release", "--"];
    if is_run { [vec!["roundtrip".to_owned()], words[4..].to_vec()].concat() } else { words }
}

/// The commands of a line, in words: split at pipes, `&`, `;`, without comments and redirections.
fn split_line(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words) = (Vec::new(), Vec::new());
    let mut word: Option<String> = None;
    let (mut quote, mut depth, mut is_redirected) = (None, 0_u32, false);
    let mut letters = line.chars().peekable();
    let finish = |word: &mut Option<String>, words: &mut Vec<String>, is_redirected: &mut bool| {
        if let Some(word) = word.take()
            && !std::mem::take(is_redirected)
        {
            words.push(word);
        }
    };
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' if depth == 0 && quote.is_none_or(|open| open == letter) => {
                quote = if quote.is_some() { None } else { Some(letter) };
                word.get_or_insert_default();
            }
            _ if quote.is_some() => word.get_or_insert_default().push(letter),
            '(' if depth > 0 || word.as_ref().is_some_and(|word| word.ends_with('$')) => {
                depth += 1;
                word.get_or_insert_default().push(letter);
            }
            ')' if depth > 0 => {
                depth -= 1;
                word.get_or_insert_default().push(letter);
            }
            _ if depth > 0 => word.get_or_insert_default().push(letter),
            '#' if word.is_none() => break,
            '|' | ';' | '&' => {
                finish(&mut word, &mut words, &mut is_redirected);
                commands.push(std::mem::take(&mut words));
            }
            '>' => {
                finish(&mut word, &mut words, &mut is_redirected);
                is_redirected = true;
            }
            // Two columns: a command and its description.
            ' ' if letters.peek() == Some(&' ') && !words.is_empty() => {
                finish(&mut word, &mut words, &mut is_redirected);
                break;
            }
            ' ' | '\t' => finish(&mut word, &mut words, &mut is_redirected),
            other => word.get_or_insert_default().push(other),
        }
    }
    finish(&mut word, &mut words, &mut is_redirected);
    commands.push(words);
    commands.retain(|words| !words.is_empty());
    commands
}

#[test]
fn commands_are_found_in_blocks_and_in_prose() {
    let text = "Use `roundtrip list\nnetworks`, or `curl`.\n\n```\n$ A=1 sudo roundtrip get -v 'a b' > out &\nroundtrip: \
                output\n$ cat x | roundtrip diagnose - --format json\n```\n\n    roundtrip predict   # all\n";
    let found = commands("t.md", text);
    let lines: Vec<String> = found.iter().map(|one| one.words.join("+")).collect();
    let expected = [
        "roundtrip+list+networks",
        "roundtrip+get+-v+a b",
        "roundtrip+diagnose+-+--format+json",
        "roundtrip+predict",
    ];
    assert_eq!(lines, expected);
    assert_eq!(found.iter().map(|one| one.is_whole).collect::<Vec<_>>(), [false, true, true, true]);
}
