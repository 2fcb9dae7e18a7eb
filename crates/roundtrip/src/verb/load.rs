//! `roundtrip load`: load runs, plans, and merged results.
//!
//! Distributions are in `workload`, users in the crate `load`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use dhttp_proto::ClientConfig;
use linux::clock::calendar;
use load::config::MAX_CONNECTIONS;
use load::limit_search::SearchSpec;
use load::log::{self, Log, RunParameters};
use load::progress::{Progress, Stop};
use load::report::{fit, junit, page, result};
use load::thresholds::{self, Threshold};
use load::traffic::Traffic;
use load::{Config, Protocol, Shard, Target, merge, ramp};
use quantity::names;
use render::output::grid::wrap_lines;
use wire::Bytes;
use workload::goodness_of_fit::fits;
use workload::plan::{MAX_REQUESTS, Plan, PlanSpec};
use workload::schedule::{Arrivals, Schedule, legs};
use workload::set::{PlanDistributions, SetName};
use workload::site::{self, Site};

use crate::cli::flags::Format;
use crate::cli::load::{
    Load, LoadFormat, LoadMerge, LoadPage, LoadPlan, LoadRun, LoadVerb, PlanFlags, ThresholdFlags,
};
use crate::failure::Failure;
use crate::loading::emulated::{self, Emulated};
use crate::loading::replay::RequestLimit;
use crate::loading::run_display::{self, RunDisplay};
use crate::loading::traffic::{self, RequestFile};
use crate::loading::{self, find_limit, plan, positive, replay, target, value};
use crate::terminal;

/// Runs the subcommand; an interrupted run prints its results, and exits as shells do for a signal.
pub fn run(flags: &Load) -> Result<ExitCode, Failure> {
    match &flags.verb {
        Some(LoadVerb::Plan(flags)) => generate_plan(flags)?,
        Some(LoadVerb::Merge(flags)) => merge_results(flags)?,
        Some(LoadVerb::Page(flags)) => write_page(flags)?,
        None => return load_server(&flags.run),
    }
    Ok(ExitCode::SUCCESS)
}

fn generate_plan(flags: &LoadPlan) -> Result<(), Failure> {
    let LoadPlan { plan: plan_flags, replay: logs, speed, output, format } = flags;
    let site = site(plan_flags)?;
    let generated = if logs.is_empty() {
        plan::generate(plan_spec(plan_flags, site.as_ref())?)?
    } else {
        replay_plan(logs, speed)?
    };
    if let Some(path) = output {
        plan::write(&generated, path)?;
    }
    let fits = fits(&generated);
    crate::output::to_stdout(&match format {
        Format::Table => {
            let terminal = terminal::of_stdout();
            let of_log = site.as_ref().map(|site| fit::of_log(&plan_flags.laws_of, site, terminal));
            of_log.unwrap_or_default() + &fit::table(&generated, &fits, output.as_deref(), terminal)
        }
        Format::Json => render::output::json(&fit::rows(site.as_ref(), &fits)),
        Format::Csv => fit::lines(&fit::rows(site.as_ref(), &fits)),
    })
}

fn merge_results(flags: &LoadMerge) -> Result<(), Failure> {
    let LoadMerge { logs, output, format } = flags;
    let shards = logs.iter().map(|path| Ok::<_, Failure>((path.as_path(), loading::log::read(path)?)));
    let merged = merge::merged(shards)?;
    if let Some(path) = output {
        crate::file::write_with(path, |out| log::write(&merged, out))?;
    }
    let run = result::run(&merged.parameters, &merged.record);
    crate::output::to_stdout(&match format {
        Format::Table => {
            let terminal = terminal::of_stdout();
            let missing = merge::missing_shards(&merged.parameters);
            result::table(&run, terminal) + &wrap_lines(&missing, terminal.prose_width())
        }
        Format::Json => render::output::json(&[run]),
        Format::Csv => {
            let terminal = terminal::of_stderr();
            let missing = wrap_lines(&merge::missing_shards(&merged.parameters), terminal.prose_width());
            eprint!("{}{missing}", result::first_lines(&run, terminal));
            result::lines(&run)
        }
    })
}

fn write_page(flags: &LoadPage) -> Result<(), Failure> {
    let LoadPage { logs, output } = flags;
    let read_run = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(page::NamedRun { name, log: loading::log::read(path)? })
    };
    let runs = logs.iter().map(read_run).collect::<Result<Vec<_>, Failure>>()?;
    crate::file::write(output, page::page(&runs).as_bytes())
}

/// Builds the plan that replays logs.
fn replay_plan(logs: &[PathBuf], speed: &str) -> Result<Plan, Failure> {
    let speed = replay::speed(speed)?;
    let lines = replay::read(logs, RequestLimit::AllOf(MAX_REQUESTS))?;
    workload::replay::replay_plan(lines, speed).map_err(|error| Failure::Value(error.to_string()))
}

/// Reads the statistics of the log whose distributions a plan uses, if any.
fn site(flags: &PlanFlags) -> Result<Option<Site>, Failure> {
    if flags.laws_of.is_empty() {
        return Ok(None);
    }
    let lines = replay::read(&flags.laws_of, RequestLimit::FirstOf(site::MAX_LOGGED_REQUESTS))?;
    let site = site::site(lines).map_err(Failure::of_flag("laws-of"))?;
    site.notes.iter().for_each(|note| terminal::warn(note));
    Ok(Some(site))
}

/// Builds the plan of `--surge`: a directory's files, with their actual sizes.
fn plan_of_directory(directory: &Path, flags: &PlanFlags) -> Result<Plan, Failure> {
    let sizes = traffic::site_of(directory)?;
    let files = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
    let cap = Bytes::new(sizes.iter().copied().max().unwrap_or(0).max(1));
    let spec = PlanSpec { files, cap, ..plan_spec(flags, site(flags)?.as_ref())? };
    let plan = plan::generate(spec)?;
    // A plan generates its files in order of popularity, as `site surge` wrote those of the directory.
    Ok(Plan { files: sizes, ..plan })
}

fn plan_spec(flags: &PlanFlags, site: Option<&Site>) -> Result<PlanSpec, Failure> {
    let PlanFlags { laws, laws_of: _, users, rate, even, duration, files, cap, conditional, seed } = flags;
    let default = PlanSpec::default();
    let duration =
        duration.as_deref().map_or(Ok(default.duration), |text| value("for", quantity::duration(text)))?;
    let arrivals = if *even { Arrivals::Constant } else { Arrivals::Poisson };
    let schedule = match rate {
        Some(rate) => Schedule::Rates(value("rate", legs(rate, duration))?, arrivals),
        None => Schedule::Users(users.as_deref().map_or(Ok(USERS), |text| positive("users", text))?),
    };
    Ok(PlanSpec {
        set: match site {
            Some(site) => PlanDistributions::Site(Box::new(site.set)),
            None => laws.as_deref().map_or(Ok(default.set), |name| {
                value("laws", SetName::named(name)).map(PlanDistributions::Named)
            })?,
        },
        files: match (files, site) {
            (Some(files), _) => positive("files", files)?,
            (None, Some(site)) => site.files,
            (None, None) => default.files,
        },
        cap: cap.as_deref().map_or(Ok(default.cap), |text| value("cap", quantity::object_size(text)))?,
        duration: match &schedule {
            Schedule::Rates(legs, _) => legs.iter().map(|leg| leg.duration).sum(),
            Schedule::Users(_) | Schedule::Replay(_) => duration,
        },
        schedule,
        conditional: match (conditional, site) {
            (Some(share), _) => value("conditional", quantity::probability(share))?,
            (None, Some(site)) => site.conditional,
            (None, None) => default.conditional,
        },
        seed: value("seed", quantity::seed(seed))?,
    })
}

/// Default number of SURGE's users.
const USERS: u32 = 100;

/// A load run that is ready to start.
struct PreparedLoad {
    traffic: Traffic,
    target: Target,
    config: Config,
    /// The emulated network, if any.
    network: Option<scenario::Network>,
    /// The server, for people.
    server: String,
    thresholds: Vec<Threshold>,
}

/// Parses the flags, and sends a preflight request.
fn prepare(flags: &LoadRun) -> Result<PreparedLoad, Failure> {
    let LoadRun { server, threshold_flags, log: log_file, .. } = flags;
    let thresholds = thresholds(threshold_flags)?;
    let config = config(flags)?;
    if server.network.is_some() {
        // A user namespace can only be entered while there is one thread.
        testbed::prepare()?;
    }
    let network =
        server.network.as_deref().map(|name| emulated::network(name, config.protocol)).transpose()?;
    let (traffic, target, url) = traffic_of(flags, &config)?;
    if config.has_early && !traffic.is_safe() {
        return Err(Failure::Value(
            "--early-data: attackers can replay early data; use it with GET and HEAD only".to_owned(),
        ));
    }
    load::resources::check(&traffic.job(), &config).map_err(|error| Failure::Value(error.to_string()))?;
    if network.is_none() {
        target::probe(&traffic, &target, &config, &url, flags.requests.expect_status.is_some())?;
    }
    crate::file::check(log_file)?;
    let server = match &network {
        None => url,
        Some(network) => format!("our own server over {}", network.name),
    };
    Ok(PreparedLoad { traffic, target, config, network, server, thresholds })
}

fn load_server(flags: &LoadRun) -> Result<ExitCode, Failure> {
    if flags.find_limit && flags.format == LoadFormat::Junit {
        return Err(Failure::Value(
            "--format junit: a search has no tests; run `load --rate` with --fail-on instead".to_owned(),
        ));
    }
    // `requires` would not hold: clap drops it where another flag excludes the search.
    if flags.report.is_some() && !flags.find_limit {
        let remedy = "for a run write --log FILE.hlog, and `roundtrip load page` its page";
        return Err(Failure::Value(format!("--report: for --find-limit; {remedy}")));
    }
    let prepared = prepare(flags)?;
    let lasts = prepared.traffic.job().lasts;
    let ramp = flags.ramp.as_deref();
    let ramp =
        ramp.map_or(Ok(ramp::stage_duration(lasts)), |text| value("ramp", quantity::duration(text)))?;
    let stop = Stop::default();
    let stop_signal = run_display::listen(stop.clone())?;
    if flags.find_limit {
        let PreparedLoad { traffic, target, config, server, thresholds, .. } = prepared;
        let Traffic::List(list) = traffic else { return Ok(ExitCode::SUCCESS) };
        let PlanFlags { even, seed, .. } = &flags.plan_flags;
        let spec = SearchSpec {
            url: &list.first_url(&server),
            lasts: flags.plan_flags.duration.as_ref().map_or(find_limit::STEP, |_| list.lasts),
            list,
            target: &target,
            config: &config,
            thresholds: &thresholds,
            ramp,
            arrivals: if *even { Arrivals::Constant } else { Arrivals::Poisson },
            seed: value("seed", quantity::seed(seed))?,
        };
        return find_limit::run(spec, flags, (&stop, &stop_signal));
    }
    let PreparedLoad { traffic, target, config, network, server, thresholds } = prepared;
    let stages = match &traffic {
        Traffic::List(list) if ramp::fits(list, &config, flags.ramp.is_some()) => {
            ramp::climb(list, &target, &config, &stop, ramp)
        }
        Traffic::List(_) | Traffic::Plan(_) => Ok(Vec::new()),
    };
    let stages = stages.map_err(|error| Failure::Network(error.to_string()))?;
    let mut display = RunDisplay::new(&server, traffic.job().lasts, config.at);
    let mut show = |progress: &Progress| display.show(progress);
    let (record, traffic) = match (&network, traffic) {
        (Some(network), Traffic::Plan(plan)) => {
            let (record, plan) = Emulated::new(network, plan)?.run(config, stop.clone(), &mut show)?;
            (record, Traffic::Plan(plan))
        }
        (_, traffic) => (load::run::run_until(traffic.job(), &target, &config, &stop, &mut show), traffic),
    };
    drop(display);
    // From here on a signal ends the program.
    stop.stop();
    let mut record = record.map_err(|error| Failure::Network(error.to_string()))?;
    record.evidence.ramp = stages;
    let log = Log { parameters: RunParameters::of(&traffic, server, &config, &record), record };
    // Results are printed even if the disk is full by now.
    let log_file = flags.log.as_ref();
    let logged = log_file.map_or(Ok(()), |path| crate::file::write_with(path, |out| log::write(&log, out)));
    let has_passed = show_result(flags.format, &thresholds, &traffic, &log)?;
    logged?;
    Ok(match log.record.cut {
        Some(_) => ExitCode::from(stop_signal.status()),
        None if has_passed => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    })
}

/// Prints the results; returns whether all thresholds were met.
fn show_result(
    format: LoadFormat,
    thresholds: &[Threshold],
    traffic: &Traffic,
    log: &Log,
) -> Result<bool, Failure> {
    let judged = thresholds::judge(thresholds, &log.record);
    let has_passed = judged.iter().all(|judged| judged.passed);
    let (notes, url) = match traffic {
        Traffic::List(list) => (list.notes.clone(), list.first_url(&log.parameters.target)),
        Traffic::Plan(_) => (Vec::new(), log.parameters.target.clone()),
    };
    let run = result::of_request(&log.parameters, &log.record, &url).with(judged, notes, &traffic.names());
    crate::output::to_stdout(&match format {
        LoadFormat::Table => result::table(&run, terminal::of_stdout()),
        LoadFormat::Json => render::output::json(&[run]),
        LoadFormat::Csv => {
            // The summary line does not fit CSV.
            eprint!("{}", result::first_lines(&run, terminal::of_stderr()));
            result::lines(&run)
        }
        LoadFormat::Junit => {
            eprint!("{}", result::first_lines(&run, terminal::of_stderr()));
            junit::text(&run)
        }
    })?;
    Ok(has_passed)
}

/// Parses the thresholds of `--max-failures` and `--fail-on`.
fn thresholds(flags: &ThresholdFlags) -> Result<Vec<Threshold>, Failure> {
    let ThresholdFlags { max_failures, fail_on } = flags;
    let mut thresholds = vec![value("max-failures", Threshold::max_failures(max_failures))?];
    for text in fail_on {
        thresholds.push(value("fail-on", Threshold::parse(text))?);
    }
    Ok(thresholds)
}

/// Returns the requests, the server, and a name for both.
fn traffic_of(flags: &LoadRun, config: &Config) -> Result<(Traffic, Target, String), Failure> {
    let LoadRun { server, requests, plan, surge, plan_flags, .. } = flags;
    let is_surge = plan.is_some() || surge.is_some() || server.network.is_some();
    let file = requests
        .requests
        .as_deref()
        .map(|path| RequestFile::read(path, server.target.as_deref()))
        .transpose()?;
    let url = file.as_ref().and_then(|file| file.server.clone()).or_else(|| server.target.clone());
    let (target, path) = match &server.network {
        Some(_) => (emulated::target(), "/".to_owned()),
        None => target::resolve(url.as_deref().unwrap_or_default(), server, config.protocol)?,
    };
    let scheme = if target.security.is_some() { "https" } else { "http" };
    if !is_surge {
        refuse_surge_flags(plan_flags)?;
        if !requests.replay.is_empty() && path != "/" {
            return Err(Failure::Value(
                "--replay: give the server alone, without a path; paths are those of the log".to_owned(),
            ));
        }
        let name = format!("{scheme}://{}{path}", target.host);
        return Ok((Traffic::List(traffic::list(requests, plan_flags, file, &path)?), target, name));
    }
    if requests.method.is_some() || requests.body.is_some() || !requests.header.is_empty() {
        return Err(Failure::Value(
            "--method, --header and --body are for a URL; a SURGE workload has requests of its own"
                .to_owned(),
        ));
    }
    let plan = match (plan, surge) {
        (Some(path), _) => plan::read(path)?,
        (None, Some(directory)) => plan_of_directory(directory, plan_flags)?,
        (None, None) => plan::generate(plan_spec(plan_flags, site(plan_flags)?.as_ref())?)?,
    };
    let name = format!("{scheme}://{}{}", target.host, target.directory);
    Ok((Traffic::Plan(plan), target, name))
}

/// Refuses flags of SURGE for a URL.
fn refuse_surge_flags(flags: &PlanFlags) -> Result<(), Failure> {
    let PlanFlags {
        laws,
        laws_of,
        users: _,
        rate: _,
        even: _,
        duration: _,
        files,
        cap,
        conditional,
        seed: _,
    } = flags;
    let given = [
        ("laws", laws.is_some()),
        ("laws-of", !laws_of.is_empty()),
        ("files", files.is_some()),
        ("cap", cap.is_some()),
        ("conditional", conditional.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::Value(format!(
            "--{flag}: it belongs to a SURGE workload; add --surge DIR (made by `roundtrip site surge DIR`) or --plan FILE"
        ))),
    }
}

fn config(flags: &LoadRun) -> Result<Config, Failure> {
    let LoadRun {
        server,
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
    let is_secure = server.target.as_deref().is_some_and(load::url::is_secure);
    let protocol = match protocol {
        Some(name) => {
            value("protocol", names::find("protocol of load", name, &Protocol::ALL, Protocol::name))?
        }
        None if is_secure => Protocol::Http2,
        None => Protocol::KeepAlive,
    };
    if *early_data && protocol != Protocol::Http3 {
        return Err(Failure::Value("--early-data is for --protocol http3".to_owned()));
    }
    if *fast_open && matches!(protocol, Protocol::Http2 | Protocol::Http3 | Protocol::Dhttp) {
        return Err(Failure::Value(
            "--fast-open is for HTTP/1; choose --protocol http10, http11 or http11-pipelined".to_owned(),
        ));
    }
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let connections = positive("connections", connections)? as usize;
    if connections > MAX_CONNECTIONS {
        return Err(Failure::Value(format!("--connections: give at most {MAX_CONNECTIONS} a user")));
    }
    let idle = keep_alive.as_deref().map(quantity::duration).transpose();
    Ok(Config {
        protocol,
        dhttp: ClientConfig::internet(),
        connections,
        ports: positive("ports", ports)? as usize,
        closes_early: *early_close,
        fast_open: *fast_open,
        has_early: *early_data,
        idle_timeout: idle.map_err(Failure::of_flag("keep-alive"))?,
        threads: match threads {
            Some(threads) => positive("threads", threads)? as usize,
            // Half of the CPUs: the server may use the others.
            None => cpus.div_ceil(2),
        },
        users: positive("share", share)?,
        shard: value("shard", Shard::parse(shard))?,
        at: at
            .as_deref()
            .map(|text| value("at", load::config::parse_start_time(text, calendar())))
            .transpose()?,
        timeout: value("timeout", quantity::positive_duration(timeout))?,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};

    #[test]
    fn the_flags_defaults_are_those_of_a_plan() {
        let Verb::Load(load) = Cli::parse_from(["roundtrip", "load", "plan"]).verb else {
            panic!("parsed as another verb");
        };
        let Load { verb: Some(LoadVerb::Plan(flags)), run: _ } = *load else {
            panic!("parsed as another verb")
        };
        assert_eq!(plan_spec(&flags.plan, None).unwrap(), PlanSpec::default());
    }
}
