//! Rules of nftables, in a table of their own: installed atomically, and removed again.
//!
//! They are text for the program `nft`, which installs a whole table in one transaction; in addition, one line of policy
//! routing (by the program `ip`) delivers diverted packets locally. Tables of other programs are never touched. Changes with
//! every request go to the kernel directly: [`elements`].
//!
//! The content of the rules is the caller's.

pub mod elements;

use std::io::{self, Write};
use std::net::IpAddr;
use std::process::{Command, Output, Stdio};

/// Address family of a table's packets. Tables of the same name and different families are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
}

impl Family {
    /// Returns the family of an address.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::Ip,
            IpAddr::V6(_) => Self::Ip6,
        }
    }

    /// Returns its name in rules: `ip`.
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

    /// Returns its option of the program `ip`.
    const fn option(self) -> &'static str {
        match self {
            Self::Ip => "-4",
            Self::Ip6 => "-6",
        }
    }
}

/// A table, and the routing of marked packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Address family of its packets.
    pub family: Family,
    /// Name of the table, unique among programs.
    pub table: &'static str,
    /// Its contents: sets, maps and chains.
    pub content: String,
    /// Mark of packets that are delivered locally, whatever their destination. It is also the number of the routing table for
    /// this.
    pub diverted: u32,
}

impl Rules {
    /// Returns the rules as text, with the commands that install and remove them by hand.
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
        if self.exists()? {
            return Err(RulesError::Exists(family, self.table));
        }
        let diverted = self.diverted.to_string();
        check("nft", nft(&self.text())?)?;
        // If a command fails, only what was added is removed.
        let mut installed = InstalledRules { rules: self, parts: 1 };
        check("ip", ip(family, &["route", "add", "local", "default", "dev", "lo", "table", &diverted])?)?;
        installed.parts = 2;
        check("ip", ip(family, &["rule", "add", "fwmark", &diverted, "lookup", &diverted])?)?;
        installed.parts = 3;
        Ok(installed)
    }

    /// Checks whether the kernel would accept the rules, without installing them.
    ///
    /// # Errors
    /// The part that is missing, or was refused.
    pub fn check(&self) -> Result<(), RulesError> {
        check("nft", run("nft", &["--check", "--file", "-"], &self.text())?)
    }

    /// Removes the rules of a killed process; returns whether there were any.
    ///
    /// # Errors
    /// If the programs are missing or not permitted.
    pub fn clean(&self) -> Result<bool, RulesError> {
        let existed = self.exists()?;
        self.remove(ALL);
        Ok(existed)
    }

    /// Returns text that atomically replaces the table of this name: there is a table at any time.
    fn replacement(&self) -> String {
        let (family, table) = (self.family.name(), self.table);
        // The first line creates the table if it has been removed.
        format!("table {family} {table} {{\n}}\ndelete table {family} {table}\n{}", self.text())
    }

    fn exists(&self) -> Result<bool, RulesError> {
        let output = run("nft", &["list", "tables", self.family.name()], "")?;
        let table_line = format!("table {} {}", self.family.name(), self.table);
        let exists = String::from_utf8_lossy(&output.stdout).lines().any(|line| line.trim() == table_line);
        check("nft", output)?;
        Ok(exists)
    }

    /// Removes the first `parts` parts. Missing ones are ignored.
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

/// Number of parts: the table, the route, and the rule that leads to it.
const ALL: usize = 3;

/// Installed rules, removed when this is dropped.
#[derive(Debug)]
pub struct InstalledRules {
    rules: Rules,
    parts: usize,
}

impl InstalledRules {
    /// Whether the table still exists.
    ///
    /// # Errors
    /// If the programs are missing or not permitted.
    pub fn exists(&self) -> Result<bool, RulesError> {
        self.rules.exists()
    }

    /// Atomically replaces the rules by others of the same table. Its sets are emptied.
    ///
    /// # Errors
    /// The refused part; then the rules are unchanged.
    pub fn replace(&mut self, rules: Rules) -> Result<(), RulesError> {
        Self::replace_all(std::slice::from_mut(self), vec![rules])
    }

    /// Does the same for several tables, in one transaction: if one part is refused, all are unchanged.
    ///
    /// # Errors
    /// The refused part.
    pub fn replace_all(all: &mut [Self], rules: Vec<Rules>) -> Result<(), RulesError> {
        let text: String = rules.iter().map(Rules::replacement).collect();
        if text.is_empty() {
            return Ok(());
        }
        match check("nft", nft(&text)?) {
            Err(RulesError::Refused(_, reported)) => Err(RulesError::ReplacementRefused(reported)),
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

/// Returns the directories of programs: those of `PATH`, and administrators', which may be missing there.
pub(crate) fn program_path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

fn run(program: &'static str, arguments: &[&str], input: &str) -> Result<Output, RulesError> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("PATH", program_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| RulesError::Program(program, error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input reports why.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(|error| RulesError::Program(program, error))
}

fn check(program: &'static str, output: Output) -> Result<(), RulesError> {
    if output.status.success() {
        return Ok(());
    }
    let reported = String::from_utf8_lossy(&output.stderr);
    let first = reported.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    Err(RulesError::Refused(program, first.trim().replace(char::is_control, " ")))
}

/// Reason why rules could not be installed or changed.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The program cannot be run.
    #[error("cannot run {0}: {1}; install {package}", package = package_of(.0))]
    Program(&'static str, io::Error),
    /// The kernel, or the program, refused them.
    #[error(
        "{0} refused the rules, and nothing is installed: {1}; run as root, on a kernel with nf_tables, \
         nft_tproxy and nft_nat"
    )]
    Refused(&'static str, String),
    /// The program, or the kernel, refused their replacement.
    #[error("nft refused the new rules, and the old ones are in force: {0}")]
    ReplacementRefused(String),
    /// Such a table already exists.
    #[error(
        "the table {family} {1} is there already: another of these commands runs, or was killed; then remove \
         it with --clean",
        family = .0.name()
    )]
    Exists(Family, &'static str),
    /// The kernel rejected a change.
    #[error("the kernel rejected a change of the rules: {0}; is the table still there?")]
    Change(io::Error),
}

/// Debian's package of a program.
fn package_of(program: &str) -> &'static str {
    if program == "nft" { "nftables" } else { "iproute2" }
}
