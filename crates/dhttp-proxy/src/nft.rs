//! Rules of nftables, in one table of our own: installed whole or not at all, and taken away again.
//!
//! Written as text for the program `nft`, which puts a whole table into the kernel in one step; beside it one line of
//! policy routing (by the program `ip`) that keeps diverted packets on this machine. Tables of other programs are never
//! touched. What changes with every request goes to the kernel directly: [`elements`].
//!
//! Not what the rules say: that is for whoever installs them.

pub mod elements;

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::net::IpAddr;
use std::process::{Command, Output, Stdio};

/// Address family of a table's packets. Two tables of one name, one of each family, are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Those of IPv4.
    Ip,
    /// Those of IPv6.
    Ip6,
}

impl Family {
    /// That of an address.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::Ip,
            IpAddr::V6(_) => Self::Ip6,
        }
    }

    /// As rules call it: `ip`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Ip6 => "ip6",
        }
    }

    /// Type of its addresses in sets: `ipv4_addr`.
    pub const fn address(self) -> &'static str {
        match self {
            Self::Ip => "ipv4_addr",
            Self::Ip6 => "ipv6_addr",
        }
    }

    /// As the program `ip` has it.
    const fn option(self) -> &'static str {
        match self {
            Self::Ip => "-4",
            Self::Ip6 => "-6",
        }
    }
}

/// A table, and where marked packets go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Address family of its packets.
    pub family: Family,
    /// Nobody else has one of this name.
    pub table: &'static str,
    /// Its contents: sets, maps and chains.
    pub content: String,
    /// Packets with this mark are delivered to this machine, whomever they are for. It is also the number of the
    /// routing table that says so.
    pub diverted: u32,
}

impl Rules {
    /// As one can install them by hand, and take them away.
    pub fn text(&self) -> String {
        let Self { family, table, content, diverted } = self;
        let (name, option) = (family.name(), family.option());
        format!(
            "# ip {option} route add local default dev lo table {diverted}\n# ip {option} rule add fwmark {diverted} \
             lookup {diverted}\n# and to remove them: nft delete table {name} {table}; ip {option} rule del fwmark \
             {diverted}; ip {option} route flush table {diverted}\ntable {name} {table} {{\n{content}}}\n"
        )
    }

    /// Installs them until the result is dropped.
    ///
    /// # Errors
    /// The part that is missing, or was refused; then nothing is installed.
    pub fn install(self) -> Result<InstalledRules, RulesError> {
        let family = self.family;
        if self.is_there()? {
            return Err(RulesError::Exists(family, self.table));
        }
        let diverted = self.diverted.to_string();
        check("nft", nft(&self.text())?)?;
        // Only what was added is taken away again, also if a line fails.
        let mut installed = InstalledRules { rules: self, parts: 1 };
        check("ip", ip(family, &["route", "add", "local", "default", "dev", "lo", "table", &diverted])?)?;
        installed.parts = 2;
        check("ip", ip(family, &["rule", "add", "fwmark", &diverted, "lookup", &diverted])?)?;
        installed.parts = 3;
        Ok(installed)
    }

    /// Whether the kernel would take them, without giving them to it.
    ///
    /// # Errors
    /// The part that is missing, or was refused.
    pub fn check(&self) -> Result<(), RulesError> {
        check("nft", run("nft", &["--check", "--file", "-"], &self.text())?)
    }

    /// Takes away what a program that was killed has left; whether there was anything.
    ///
    /// # Errors
    /// If the programs are missing or may not be used.
    pub fn clean(&self) -> Result<bool, RulesError> {
        let was_there = self.is_there()?;
        self.remove(ALL);
        Ok(was_there)
    }

    /// The table as text that takes the place of one of this name, in one step: at no time is there none.
    fn replacement(&self) -> String {
        let (family, table) = (self.family.name(), self.table);
        // The first makes one if somebody has taken it away.
        format!("table {family} {table} {{\n}}\ndelete table {family} {table}\n{}", self.text())
    }

    fn is_there(&self) -> Result<bool, RulesError> {
        let listed = run("nft", &["list", "tables", self.family.name()], "")?;
        let wanted = format!("table {} {}", self.family.name(), self.table);
        let is_there = String::from_utf8_lossy(&listed.stdout).lines().any(|line| line.trim() == wanted);
        check("nft", listed)?;
        Ok(is_there)
    }

    /// Takes the first so many parts away. What is not there needs no removing.
    fn remove(&self, parts: usize) {
        let diverted = self.diverted.to_string();
        let remove: [&dyn Fn() -> Result<Output, RulesError>; ALL] = [
            &|| nft(&format!("delete table {} {}", self.family.name(), self.table)),
            &|| ip(self.family, &["route", "flush", "table", &diverted]),
            &|| ip(self.family, &["rule", "del", "fwmark", &diverted]),
        ];
        for part in remove.iter().take(parts).rev() {
            let _ = part();
        }
    }
}

/// The table, the route, the rule that leads to it.
const ALL: usize = 3;

/// Rules that are in force until this is dropped.
#[derive(Debug)]
pub struct InstalledRules {
    rules: Rules,
    parts: usize,
}

impl InstalledRules {
    /// Whether nobody has taken the table away.
    ///
    /// # Errors
    /// If the programs are missing or may not be used.
    pub fn is_there(&self) -> Result<bool, RulesError> {
        self.rules.is_there()
    }

    /// Puts other rules of the same table in the place of these, in one step. What was in its sets is gone.
    ///
    /// # Errors
    /// The refused part; then the rules are unchanged.
    pub fn replace(&mut self, rules: Rules) -> Result<(), RulesError> {
        Self::replace_all(std::slice::from_mut(self), vec![rules])
    }

    /// The same for several tables, each with its own in the place of what it has, and all of them in one step: if one is
    /// refused, all are what they were.
    ///
    /// # Errors
    /// The refused part.
    pub fn replace_all(all: &mut [Self], rules: Vec<Rules>) -> Result<(), RulesError> {
        let text: String = rules.iter().map(Rules::replacement).collect();
        if text.is_empty() {
            return Ok(());
        }
        match check("nft", nft(&text)?) {
            Err(RulesError::Refused(_, reported)) => Err(RulesError::Kept(reported)),
            Err(error) => Err(error),
            Ok(()) => {
                for (installed, rules) in all.iter_mut().zip(rules) {
                    installed.rules = rules;
                }
                Ok(())
            }
        }
    }
}

impl Drop for InstalledRules {
    fn drop(&mut self) {
        self.rules.remove(self.parts);
    }
}

fn nft(text: &str) -> Result<Output, RulesError> {
    run("nft", &["--file", "-"], text)
}

fn ip(family: Family, arguments: &[&str]) -> Result<Output, RulesError> {
    run("ip", &[&[family.option()], arguments].concat(), "")
}

fn run(program: &'static str, arguments: &[&str], input: &str) -> Result<Output, RulesError> {
    // Where administrators' programs are, also for those whose PATH does not say so.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| RulesError::Program(program, error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that reads nothing has said why.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(|error| RulesError::Program(program, error))
}

fn check(program: &'static str, output: Output) -> Result<(), RulesError> {
    if output.status.success() {
        return Ok(());
    }
    let reported = String::from_utf8_lossy(&output.stderr);
    let first = reported.lines().find(|line| !line.trim().is_empty()).unwrap_or("it did not say why");
    Err(RulesError::Refused(program, first.trim().replace(char::is_control, " ")))
}

/// Why there are no rules.
#[derive(Debug)]
pub enum RulesError {
    /// The program cannot be run.
    Program(&'static str, io::Error),
    /// The kernel, or the program, did not take them.
    Refused(&'static str, String),
    /// The program, or the kernel, did not take others in their place.
    Kept(String),
    /// There is such a table already.
    Exists(Family, &'static str),
    /// The kernel did not take a change.
    Change(io::Error),
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program, error) => {
                let package = if *program == "nft" { "nftables" } else { "iproute2" };
                write!(f, "cannot run {program}: {error}; install {package}")
            }
            Self::Refused(program, reported) => write!(
                f,
                "{program} refused the rules, and nothing is installed: {reported}; run as root, on a kernel with nf_tables, \
                 nft_tproxy and nft_nat"
            ),
            Self::Kept(reported) => {
                write!(f, "nft refused the new rules, and the old ones are in force: {reported}")
            }
            Self::Exists(family, table) => write!(
                f,
                "the table {} {table} is there already: another of these commands runs, or was killed; then remove it \
                 with --clean",
                family.name()
            ),
            Self::Change(error) => {
                write!(f, "the kernel did not take a change of the rules: {error}; is the table still there?")
            }
        }
    }
}

impl Error for RulesError {}
