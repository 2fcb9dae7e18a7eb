//! Traffic of a load from flags: one URL, a file of requests, an access log, or a SURGE directory.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use load::job::{Turns, loop_pages, timed_pages};
use load::requests::file::{Entry, MAX_FILE_BYTES, parse};
use load::requests::logged::Replay;
use load::requests::{MAX_BODIES_BYTES, MAX_BODY_BYTES, Request, RequestError, Statuses};
use load::traffic::RequestList;

use render::output::number;
use wire::{Duration, Seed};
use workload::plan::{MAX_REQUESTS, Page, PlanError};
use workload::schedule::{Arrivals, Leg, Times, legs};

use crate::cli::load::{PlanFlags, RequestFlags};
use crate::failure::{Failure, shown};
use crate::loading::{plan, replay};

use super::target::server_url;

/// File of requests, with the server that it names, if any.
pub struct RequestFile {
    path: PathBuf,
    requests: Vec<Request>,
    /// The server, as in `http://127.0.0.1:3000`.
    pub server: Option<String>,
}

impl RequestFile {
    /// Reads the file and all bodies; `url` is that of the command line.
    pub fn read(path: &Path, url: Option<&str>) -> Result<Self, Failure> {
        let bytes = read_limited(path, MAX_FILE_BYTES)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| {
            Failure::Value(format!("{}: it is not text in UTF-8; write requests as text", shown(path)))
        })?;
        let entries = parse(text)
            .map_err(|error| Failure::Value(format!("{}:{}: {}", shown(path), error.line, error.reason)))?;
        let mut server = url.map(str::to_owned);
        if let Some(url) = url
            && server_url(url)?.url.target != "/"
        {
            return Err(Failure::Value(format!(
                "{url}: with --requests give the server alone, without a path"
            )));
        }
        let (mut requests, mut body_bytes) = (Vec::with_capacity(entries.len()), 0);
        for Entry { line, server: named, mut request, body } in entries {
            let at =
                |line: usize, reason: String| Failure::Value(format!("{}:{line}: {reason}", shown(path)));
            match (&server, named) {
                (Some(first), Some(named)) if !server_url(first)?.is_same_server(&server_url(&named)?) => {
                    return Err(at(
                        line,
                        format!("{named} is another server than {first}; a run loads one server"),
                    ));
                }
                (None, Some(named)) => server = Some(named),
                (None, None) => {
                    return Err(at(
                        line,
                        "the server is not known; write a URL here, or name the server: roundtrip load http://HOST:PORT \
                         --requests FILE"
                            .to_owned(),
                    ));
                }
                (Some(_), _) => {}
            }
            if let Some((line, name)) = body {
                let bytes = read_limited(Path::new(&name), MAX_BODY_BYTES)
                    .map_err(|failure| at(line, failure.to_string()))?;
                body_bytes += bytes.len() as u64;
                if body_bytes > MAX_BODIES_BYTES {
                    return Err(at(
                        line,
                        format!("all bodies together are longer than {MAX_BODIES_BYTES} bytes; shorten them"),
                    ));
                }
                request.set_body(bytes.into()).map_err(|error| at(line, error.to_string()))?;
            }
            requests.push(request);
        }
        Ok(Self { path: path.to_owned(), requests, server })
    }
}

/// Reads a file of up to `limit` bytes.
fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let unreadable = |error| Failure::Read { path: path.to_owned(), error };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        let limit = number::count(limit as f64);
        return Err(Failure::Value(format!("{}: it is longer than {limit} bytes; shorten it", shown(path))));
    }
    Ok(bytes)
}

/// Default users of a closed loop, and default duration.
const USERS: u32 = 10;
const DURATION: Duration = Duration::from_secs(10);

/// Builds the requests from flags; `path` is that of the URL.
pub fn list(
    flags: &RequestFlags,
    schedule: &PlanFlags,
    file: Option<RequestFile>,
    path: &str,
) -> Result<RequestList, Failure> {
    let RequestFlags { requests: _, method, header, body, expect_status, replay: logs, speed } = flags;
    let statuses = match expect_status {
        None => Statuses::default(),
        Some(text) => Statuses::parse(text).ok_or_else(|| {
            Failure::Value(format!(
                "--expect-status: `{text}` is not a list of statuses, such as 200,204,300-399"
            ))
        })?,
    };
    let with_fields = |mut request: Request| {
        let error = Failure::of_flag("header");
        header.iter().try_for_each(|field| request.add_field(field)).map_err(error)?;
        Ok::<_, Failure>(request)
    };
    let seed: Seed = super::value("seed", quantity::seed(&schedule.seed))?;
    if !logs.is_empty() {
        let factor = replay::speed(speed)?;
        let Replay { requests, pages, lasts, notes } = replay::requests(logs, factor)?;
        let requests = requests.into_iter().map(with_fields).collect::<Result<Vec<_>, _>>()?;
        let lasts = match &schedule.duration {
            Some(text) => super::value("for", quantity::duration(text))?.min(lasts),
            None => lasts,
        };
        let names: Vec<String> = logs.iter().map(|log| shown(log)).collect();
        let words = format!("requests of {} at {factor} times its speed", names.join(", "));
        let (requests, turns, seed) = (requests.into(), Turns::Once, seed.get());
        return Ok(RequestList {
            requests,
            statuses,
            pages,
            turns,
            lasts,
            seed,
            words,
            notes,
            is_judged: false,
        });
    }
    let (requests, description) = match file {
        Some(RequestFile { path, requests, server: _ }) => {
            let description = match requests.len() {
                1 => format!("the request of {}", shown(&path)),
                several => format!("{} requests of {}", number::count(several as f64), shown(&path)),
            };
            (requests, description)
        }
        None => {
            let usual = if body.is_some() { "POST" } else { "GET" };
            let method = method.as_deref().unwrap_or(usual);
            let error = |error: RequestError| match error {
                RequestError::Method(_) => Failure::Value(format!("--method: {error}")),
                error => Failure::Value(error.to_string()),
            };
            let mut request = with_fields(Request::new(method, path).map_err(error)?)?;
            let bytes = match body.as_deref().map(|text| (text, text.strip_prefix('@'))) {
                None => Vec::new(),
                Some((_, Some(name))) => read_limited(Path::new(name), MAX_BODY_BYTES)?,
                Some((text, None)) => text.as_bytes().to_vec(),
            };
            let too_long = Failure::of_flag("body");
            request.set_body(Bytes::from(bytes)).map_err(too_long)?;
            (vec![request], method.to_owned())
        }
    };
    let (pages, turns, lasts, schedule_text) = scheduled(schedule, seed, requests.len())?;
    let (requests, words, notes, seed) =
        (requests.into(), format!("{description}, {schedule_text}"), Vec::new(), seed.get());
    Ok(RequestList { requests, statuses, pages, turns, lasts, seed, words, notes, is_judged: true })
}

/// Returns the schedule of `requests` requests, its duration, and a description of both.
fn scheduled(
    flags: &PlanFlags,
    seed: Seed,
    requests: usize,
) -> Result<(Vec<Page>, Turns, Duration, String), Failure> {
    let duration = match &flags.duration {
        Some(text) => super::value("for", quantity::positive_duration(text))?,
        None => DURATION,
    };
    let Some(rate) = &flags.rate else {
        let users = flags.users.as_deref().map_or(Ok(USERS), |text| super::positive("users", text))?;
        let schedule_text = format!(
            "{} user{} in a closed loop",
            number::count(f64::from(users)),
            if users == 1 { "" } else { "s" }
        );
        return Ok((loop_pages(requests), Turns::Loop(users), duration, schedule_text));
    };
    let legs = super::value("rate", legs(rate, duration))?;
    let expected: f64 = legs.iter().map(Leg::due).sum();
    if expected > MAX_REQUESTS {
        return Err(Failure::Value(PlanError::TooManyRequests(expected).to_string()));
    }
    let arrivals = if flags.even { Arrivals::Constant } else { Arrivals::Poisson };
    plan::check_requests(expected)?;
    let times = Times::new(&legs, arrivals, seed.stream("load-arrivals", 0));
    let duration = legs.iter().map(|leg| leg.duration).sum();
    let schedule_text = format!("{rate} requests a second{}", if flags.even { ", evenly" } else { "" });
    Ok((timed_pages(requests, times), Turns::Once, duration, schedule_text))
}

/// Returns the sizes of the files in a directory of `site surge`.
pub fn site_of(directory: &Path) -> Result<Vec<u64>, Failure> {
    let mut sizes = Vec::new();
    for number in 0.. {
        let path = directory.join(workload::plan::path(number));
        match fs::metadata(&path) {
            Ok(file) if file.is_file() => sizes.push(file.len()),
            Ok(_) => break,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => break,
            Err(error) => return Err(Failure::Read { path, error }),
        }
    }
    if sizes.len() < 2 {
        return Err(Failure::Value(format!(
            "--surge {}: it has no files 0.bin, 1.bin and so on; make it with `roundtrip site surge {0}`",
            shown(directory)
        )));
    }
    Ok(sizes)
}
