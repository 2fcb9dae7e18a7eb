//! `roundtrip completions` and `roundtrip man`, generated from the definition of the command line.

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use quantity::names::Quoted;

use crate::cli::{self, examples};
use crate::failure::Failure;

/// Prints the script that completes this program's command lines in `shell`.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "roundtrip", &mut script);
    crate::output::to_stdout(&String::from_utf8_lossy(&script))
}

/// Prints the manual page of the program, or of one verb.
pub fn man(verb: Option<&str>) -> Result<(), Failure> {
    let mut program = cli::command();
    // Gives each verb its full name, `roundtrip predict`.
    program.build();
    let command = match verb {
        None => program,
        Some(name) => find_verb(&program, name)?,
    };
    let page = page(command, verb).expect("writing to memory does not fail");
    crate::output::to_stdout(&String::from_utf8_lossy(&page))
}

fn find_verb(program: &Command, name: &str) -> Result<Command, Failure> {
    program.find_subcommand(name).cloned().ok_or_else(|| {
        let known: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
        Failure::Value(format!("unknown verb {}. Known: {}", Quoted(name), known.join(", ")))
    })
}

fn page(command: Command, verb: Option<&str>) -> std::io::Result<Vec<u8>> {
    let manual = Man::new(command).manual("Roundtrip").section("1");
    let mut page = Vec::new();
    manual.render_title(&mut page)?;
    manual.render_name_section(&mut page)?;
    manual.render_synopsis_section(&mut page)?;
    manual.render_description_section(&mut page)?;
    page.extend(examples_section(verb).bytes());
    manual.render_options_section(&mut page)?;
    if verb.is_none() {
        manual.render_subcommands_section(&mut page)?;
        page.extend(EXIT_STATUS.bytes());
    }
    Ok(page)
}

/// The examples in roff: each command in bold, with its description below.
fn examples_section(verb: Option<&str>) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('-', "\\-");
    let example = |example: &examples::Example| {
        let examples::Example { command, result } = example;
        format!(".TP\n\\fB{}\\fR\n{}\n", escaped(command), escaped(result))
    };
    let examples: String = examples::of(verb).iter().map(example).collect();
    format!(".SH EXAMPLES\n{examples}")
}

const EXIT_STATUS: &str = ".SH \"EXIT STATUS\"
.TP
0
A result.
.TP
1
A finding, or a verdict that fails.
.TP
2
Misuse, or an input that cannot be read.
";
