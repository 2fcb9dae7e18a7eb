//! `roundtrip load`: plans drawn, and servers loaded by them.
//!
//! Not the laws (`scenario::surge`), nor the users (the crate `load`).

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use dhttp::clock::calendar;
use dhttp_proto::ClientConfig;
use load::config::MOST_CONNECTIONS;
use load::live::{Progress, Stop};
use load::log::{self, About, Log};
use load::{Config, Protocol, Record, Shard};
use scenario::names;
use scenario::surge::fits::fits;
use scenario::surge::plan::{MOST_REQUESTS, Plan, Wanted};
use scenario::surge::replay::replayed;
use scenario::surge::schedule::{Arrivals, Schedule, legs};
use scenario::surge::set::{Laws, SetName};
use scenario::surge::site::{self, Site};
use scenario::value::quantity;

use crate::cli::flags::Format;
use crate::cli::load::{Load, LoadMerge, LoadPage, LoadPlan, LoadRun, LoadVerb, PlanFlags};
use crate::failure::Failure;
use crate::loading::emulated::{self, Emulated};
use crate::loading::replay::Most;
use crate::loading::watch::{self, Watch};
use crate::loading::{merge, page, plan, replay, result, target};
use crate::output;
use crate::terminal::Terminal;

/// Does what is asked of load; a run that was cut ends as shells say of a signal, though what came of it is said.
pub fn run(flags: &Load) -> Result<ExitCode, Failure> {
    match &flags.verb {
        Some(LoadVerb::Plan(flags)) => draw(flags)?,
        Some(LoadVerb::Merge(flags)) => put_together(flags)?,
        Some(LoadVerb::Page(flags)) => draw_page(flags)?,
        None => return load_server(&flags.run),
    }
    Ok(ExitCode::SUCCESS)
}

fn draw(flags: &LoadPlan) -> Result<(), Failure> {
    let LoadPlan { plan: wanted, replay: logs, speed, output, format } = flags;
    let site = site(wanted)?;
    let drawn = if logs.is_empty() { drawn(wanted, site.as_ref())? } else { again(logs, speed)? };
    if let Some(path) = output {
        plan::write(&drawn, path)?;
    }
    let fits = fits(&drawn);
    output::to_stdout(&match format {
        Format::Table => {
            let of_log = site.as_ref().map_or(String::new(), |site| plan::of_log(&wanted.laws_of, site));
            of_log + &plan::table(&drawn, &fits, output.as_deref())
        }
        Format::Json => output::json(&plan::rows(site.as_ref(), &fits)),
        Format::Csv => plan::lines(&plan::rows(site.as_ref(), &fits)),
    })
}

fn put_together(flags: &LoadMerge) -> Result<(), Failure> {
    let LoadMerge { logs, output, format } = flags;
    let parts = logs.iter().map(|path| Ok((path.as_path(), merge::read(path)?)));
    let whole = merge::merged(parts)?;
    if let Some(path) = output {
        crate::file::write_with(path, |out| log::write(&whole, out))?;
    }
    let run = result::run(&whole.about, &whole.record);
    output::to_stdout(&match format {
        Format::Table => result::table(&run, Terminal::of_stdout()) + &merge::remarks(&whole.about),
        Format::Json => output::json(&[run]),
        Format::Csv => {
            eprint!("{}{}", result::first_of(&run), merge::remarks(&whole.about));
            result::lines(&run)
        }
    })
}

fn draw_page(flags: &LoadPage) -> Result<(), Failure> {
    let LoadPage { logs, output } = flags;
    let named = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(page::Named { name, log: merge::read(path)? })
    };
    let runs = logs.iter().map(named).collect::<Result<Vec<_>, Failure>>()?;
    crate::file::write(output, page::page(&runs).as_bytes())
}

/// What logs have, once more.
fn again(logs: &[PathBuf], speed: &str) -> Result<Plan, Failure> {
    let refused = || Failure::Value(format!("--speed: `{speed}` is not a number above 0, up to 1,000,000"));
    let speed = speed.parse().ok().filter(|speed: &f64| *speed > 0.0 && *speed <= 1e6).ok_or_else(refused)?;
    let lines = replay::read(logs, Most::AllOf(MOST_REQUESTS))?;
    replayed(lines, speed).map_err(|unfit| Failure::Value(unfit.to_string()))
}

/// What the log says by whose laws a plan is to be drawn, if one was given.
fn site(flags: &PlanFlags) -> Result<Option<Site>, Failure> {
    if flags.laws_of.is_empty() {
        return Ok(None);
    }
    let lines = replay::read(&flags.laws_of, Most::FirstOf(site::MOST_READ))?;
    let site = site::site(lines).map_err(|little| Failure::Value(format!("--laws-of: {little}")))?;
    site.notes.iter().for_each(|note| eprintln!("{note}"));
    Ok(Some(site))
}

fn drawn(flags: &PlanFlags, site: Option<&Site>) -> Result<Plan, Failure> {
    plan::drawn(wanted(flags, site)?)
}

fn wanted(flags: &PlanFlags, site: Option<&Site>) -> Result<Wanted, Failure> {
    let PlanFlags { laws, laws_of: _, users, rate, even, lasts, files, cap, conditional, seed } = flags;
    let usual = Wanted::default();
    let lasts = value("for", quantity::duration(lasts))?;
    let arrivals = if *even { Arrivals::Constant } else { Arrivals::Poisson };
    let schedule = match rate {
        Some(rate) => Schedule::Rates(value("rate", legs(rate, lasts))?, arrivals),
        None => Schedule::Users(positive("users", users)?),
    };
    Ok(Wanted {
        set: match site {
            Some(site) => Laws::Site(Box::new(site.set)),
            None => Laws::Named(value("laws", SetName::named(laws))?),
        },
        files: match (files, site) {
            (Some(files), _) => positive("files", files)?,
            (None, Some(site)) => site.files,
            (None, None) => usual.files,
        },
        cap: value("cap", quantity::object_size(cap))?,
        lasts: match &schedule {
            Schedule::Rates(legs, _) => legs.iter().map(|leg| leg.lasts).sum(),
            Schedule::Users(_) | Schedule::Replay(_) => lasts,
        },
        schedule,
        conditional: match (conditional, site) {
            (Some(share), _) => value("conditional", quantity::probability(share))?,
            (None, Some(site)) => site.conditional,
            (None, None) => usual.conditional,
        },
        seed: value("seed", quantity::seed(seed))?,
    })
}

fn value<T>(flag: &str, value: Result<T, impl fmt::Display>) -> Result<T, Failure> {
    value.map_err(|error| Failure::Value(format!("--{flag}: {error}")))
}

fn positive(flag: &str, text: &str) -> Result<u32, Failure> {
    let refused = || Failure::Value(format!("--{flag}: `{text}` is not a number from 1 to 4,294,967,295"));
    text.parse().ok().filter(|number| *number > 0).ok_or_else(refused)
}

fn load_server(flags: &LoadRun) -> Result<ExitCode, Failure> {
    let LoadRun { whom, plan, wanted, log: log_file, format, .. } = flags;
    let config = config(flags)?;
    let network = whom.network.as_deref().map(|name| emulated::network(name, config.protocol)).transpose()?;
    let target = if network.is_some() { emulated::target() } else { target::found(whom, config.protocol)? };
    let plan = match plan {
        Some(path) => plan::read(path)?,
        None => drawn(wanted, site(wanted)?.as_ref())?,
    };
    load::needs::check(&plan, &config).map_err(|short| Failure::Value(short.to_string()))?;
    if network.is_none() {
        target::probe(&target, &config)?;
    }
    if let Some(path) = log_file {
        crate::file::check(path)?;
    }
    let stop = Stop::default();
    let heard = watch::listen(stop.clone())?;
    let mut watch = Watch::new(plan.wanted.lasts, config.at);
    let mut show = |progress: &Progress| watch.show(progress);
    let (record, plan) = match &network {
        None => (load::run::run_until(&plan, &target, &config, &stop, &mut show), plan),
        Some(network) => Emulated::new(network, plan)?.run(config, stop.clone(), &mut show)?,
    };
    drop(watch);
    // Whoever is in a hurry now does not want to read what came of it.
    stop.stop();
    let record = record.map_err(|error| Failure::Network(error.to_string()))?;
    let scheme = if target.security.is_some() { "https" } else { "http" };
    let whom = match network {
        None => format!("{scheme}://{}{}", target.host, target.folder),
        Some(network) => format!("our own server over {}", network.name),
    };
    let log = Log { about: about(&plan, whom, &config, &record), record };
    // What came of it is told even if the disk is full by now.
    let logged =
        log_file.as_ref().map_or(Ok(()), |path| crate::file::write_with(path, |out| log::write(&log, out)));
    let run = result::run(&log.about, &log.record);
    output::to_stdout(&match format {
        Format::Table => result::table(&run, Terminal::of_stdout()),
        Format::Json => output::json(&[run]),
        Format::Csv => {
            // Rows have no first line for it.
            eprint!("{}", result::first_of(&run));
            result::lines(&run)
        }
    })?;
    logged?;
    Ok(if log.record.cut.is_some() { ExitCode::from(heard.status()) } else { ExitCode::SUCCESS })
}

fn about(plan: &Plan, target: String, config: &Config, record: &Record) -> About {
    let Config {
        protocol,
        dhttp: _,
        connections,
        ports: _,
        closes_early,
        fast_open,
        has_early,
        keeps,
        shard,
        threads: _,
        users: _,
        patience: _,
        at: _,
    } = config;
    let mut clients = Vec::new();
    if *connections > 1 {
        clients.push(format!("{connections} connections a user"));
    }
    if *closes_early {
        clients.push("closing after each page".to_owned());
    }
    if *fast_open {
        clients.push("with Fast Open".to_owned());
    }
    if *has_early {
        clients.push("asking early (0-RTT)".to_owned());
    }
    if let Some(keeps) = keeps {
        clients.push(format!("keeping connections for {keeps}"));
    }
    let began = record.began.as_secs_f64();
    About {
        target,
        protocol: protocol.name().to_owned(),
        clients: clients.join(", "),
        laws: plan.wanted.set.name().to_owned(),
        seed: plan.wanted.seed.get(),
        plan: plan::mark(plan),
        parts: vec![shard.number()],
        of: shard.of(),
        began: (began, began),
    }
}

fn config(flags: &LoadRun) -> Result<Config, Failure> {
    let LoadRun {
        protocol,
        connections,
        ports,
        early_close,
        fast_open,
        early_data,
        keep_alive,
        threads,
        timeout,
        share,
        shard,
        at,
        ..
    } = flags;
    let protocol =
        value("protocol", names::find("protocol of load", protocol, &Protocol::ALL, Protocol::name))?;
    if *early_data && protocol != Protocol::Http3 {
        return Err(Failure::Value("--early-data is for --protocol http3".to_owned()));
    }
    if *fast_open && matches!(protocol, Protocol::Http2 | Protocol::Http3 | Protocol::Dhttp) {
        return Err(Failure::Value(
            "--fast-open is for HTTP/1; say --protocol http10, http11 or http11-pipelined".to_owned(),
        ));
    }
    let here = thread::available_parallelism().map_or(1, usize::from);
    let connections = positive("connections", connections)? as usize;
    if connections > MOST_CONNECTIONS {
        return Err(Failure::Value(format!("--connections: a user has no more than {MOST_CONNECTIONS}")));
    }
    Ok(Config {
        protocol,
        dhttp: ClientConfig::internet(),
        connections,
        ports: positive("ports", ports)? as usize,
        closes_early: *early_close,
        fast_open: *fast_open,
        has_early: *early_data,
        keeps: keep_alive
            .as_deref()
            .map(quantity::duration)
            .transpose()
            .map_err(|error| Failure::Value(format!("--keep-alive: {error}")))?,
        threads: match threads {
            Some(threads) => positive("threads", threads)? as usize,
            // Half of this machine: the server may be on the other.
            None => here.div_ceil(2),
        },
        users: positive("share", share)?,
        shard: part(shard)?,
        at: at.as_deref().map(since_1970).transpose()?,
        patience: value("timeout", quantity::duration(timeout))?,
    })
}

/// `2/8`: the second of eight.
fn part(text: &str) -> Result<Shard, Failure> {
    let part =
        text.split_once('/').and_then(|(number, of)| Shard::new(number.parse().ok()?, of.parse().ok()?));
    part.ok_or_else(|| {
        Failure::Value(format!("--shard: `{text}` is no part; say I/N, such as 2/8, I from 1 to N"))
    })
}

/// A time to come, and not one that nobody waits for.
fn since_1970(text: &str) -> Result<wire::Duration, Failure> {
    let now = calendar();
    let at: Option<u64> = text.parse().ok();
    let at =
        at.map(wire::Duration::from_secs).filter(|at| *at > now && at.saturating_sub(now) <= LONGEST_WAIT);
    at.ok_or_else(|| {
        let now = now.as_nanos() / 1_000_000_000;
        Failure::Value(format!("--at: `{text}` is not within the next day; it is {now} now"))
    })
}

const LONGEST_WAIT: wire::Duration = wire::Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};

    #[test]
    fn the_flags_defaults_are_those_of_a_plan() {
        let Verb::Load(Load { verb: Some(LoadVerb::Plan(flags)), run: _ }) =
            Cli::parse_from(["roundtrip", "load", "plan"]).verb
        else {
            panic!("another verb");
        };
        assert_eq!(wanted(&flags.plan, None).unwrap(), Wanted::default());
    }
}
