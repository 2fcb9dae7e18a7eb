//! The examples at the beginning of each `--help` and each manual page.
//!
//! They are data, so that a test parses each of them and rejects outdated ones.

use crate::feature::Feature;

/// Example command line, with its result.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// As typed in a shell.
    pub command: &'static str,
    /// Short description of the result.
    pub result: &'static str,
}

const fn example(command: &'static str, result: &'static str) -> Example {
    Example { command, result }
}

/// Returns the examples of one verb, or of the program if `verb` is `None`.
pub fn of(verb: Option<&str>) -> &'static [Example] {
    match verb {
        None if !Feature::AllVerbs.is_built() => &DIAGNOSE,
        None => &PROGRAM,
        Some("predict") => &PREDICT,
        Some("simulate") => &SIMULATE,
        Some("measure") => &MEASURE,
        Some("compare") => &COMPARE,
        Some("diagnose") => &DIAGNOSE,
        Some("watch") => &WATCH,
        Some("reproduce") => &REPRODUCE,
        Some("connections") => &CONNECTIONS,
        Some("content") => &CONTENT,
        Some("page") => &PAGE,
        Some("lab") => &LAB,
        Some("load") => &LOAD,
        Some("logs") => &LOGS,
        Some("serve") => &SERVE,
        Some("gateway") => &GATEWAY,
        Some("cache") => &CACHE,
        Some("nat") => &NAT,
        Some("get") => &GET,
        Some("site") => &SITE,
        Some("link") => &LINK,
        Some("list") => &LIST,
        Some("completions") => &COMPLETIONS,
        Some("man") => &MAN,
        Some(_) => &[],
    }
}

/// Maximum number of examples that `-h` shows.
pub const SHORT: usize = 6;

/// Formats the first `count` examples of a verb for the text above its usage; `None` if it has none.
pub fn text(verb: Option<&str>, width: usize, count: usize) -> Option<String> {
    let examples = of(verb);
    let examples = examples.get(..count).unwrap_or(examples);
    if examples.is_empty() {
        return None;
    }
    // Two columns if they fit; the description of a longer command is on the next line.
    let longest_result = examples.iter().map(|example| example.result.len()).max().unwrap_or(0);
    let longest = width.saturating_sub(longest_result + 4);
    let lengths = examples.iter().map(|example| example.command.len());
    let column = lengths.filter(|length| *length <= longest).max().unwrap_or(0);
    let lines = examples.iter().map(|example| line(example, column));
    Some(format!("Examples:\n{}", lines.collect::<String>().trim_end()))
}

fn line(example: &Example, column: usize) -> String {
    let Example { command, result } = example;
    match command.len() > column {
        true => format!("  {command}\n      {result}\n"),
        false => format!("  {command:column$}  {result}\n"),
    }
}

const PROGRAM: [Example; 5] = [
    example("roundtrip diagnose slow.pcapng", "the cause of every stall in a capture"),
    example("roundtrip diagnose --run -- curl -s http://www.example.com/", "the same of a command"),
    example("roundtrip compare --page visit.har --network 4g", "a recorded page by each protocol"),
    example("roundtrip simulate --rtt 10ms..200ms*8 --rate 20Mbit --loss 0%,1%", "a grid of scenarios"),
    example("roundtrip list networks", "names of networks, with their parameters"),
];

const PREDICT: [Example; 5] = [
    example("roundtrip predict", "every protocol, one page, one network"),
    example("roundtrip predict --network all --page all", "the papers' networks and pages"),
    example("roundtrip predict --rtt 40ms --rate 20Mbit", "a custom network"),
    example(
        "roundtrip predict --page 14kb+3kb+180kb --requests dependent",
        "a custom page, sequential requests",
    ),
    example("roundtrip predict --format json", "as JSON"),
];

const SIMULATE: [Example; 7] = [
    example("roundtrip simulate", "a connection per object, against keep-alive"),
    example("roundtrip simulate --stack sunos-4.1.3,linux --network all", "two TCP stacks on every network"),
    example("roundtrip simulate --loss 1% --runs 100", "with a packet loss of 1%"),
    example(
        "roundtrip simulate --page www --protocol http11-pipelined --client-codings br",
        "the page in the directory www, its text by Brotli",
    ),
    example("roundtrip simulate --plot run.svg", "with a time-sequence plot of the packets"),
    example("roundtrip simulate --pcap run.pcapng", "with a capture at the client, for Wireshark"),
    example("roundtrip simulate --network 4g --protocol http3 --qlog run.qlog", "with QUIC's events"),
];

const MEASURE: [Example; 7] = [
    example("roundtrip measure", "a connection per object, against keep-alive"),
    example("roundtrip measure --profile linux --runs 30", "with TCP as Linux ships it"),
    example("roundtrip measure --protocol http11 --pcap run.pcapng", "with a capture at both ends"),
    example("roundtrip measure scenarios/modem.toml", "a scenario file"),
    example("roundtrip measure --profile linux --server nginx --protocol http11", "with nginx as the server"),
    example("roundtrip measure --client chromium --page visit.har --network 4g", "a recording in Chromium"),
    example("roundtrip measure --server nginx --client curl --network 4g --protocol http2", "over TLS"),
];

const LINK: [Example; 5] = [
    example("roundtrip link --network 4g -- ./test-suite", "a test suite over 4G"),
    example("roundtrip link --network 3g -- bash", "a shell, with servers and clients in it"),
    example(
        "roundtrip link --rtt 80ms --rate 10Mbit --loss 1% --diagnose -- ./client-and-server.sh",
        "a custom network, and the causes of stalls",
    ),
    example(
        "roundtrip link --rtt 40ms --network-trace lte-up.trace,lte-down.trace --queue 100p -- bash",
        "a recorded cellular link (mahimahi's traces)",
    ),
    example(
        "roundtrip link --network dsl --queue-discipline fq-codel --pcap run.pcapng -- bash",
        "with a capture",
    ),
];

const COMPARE: [Example; 4] = [
    example("roundtrip compare", "a connection per object, against keep-alive"),
    example("roundtrip compare --network modem --page small-page", "one network, one page"),
    example("roundtrip compare --report compare.html", "with a report in HTML"),
    example("roundtrip compare --engine model", "without touching the kernel"),
];

const REPRODUCE: [Example; 5] = [
    example("roundtrip reproduce --figures figures", "everything, the figures as files"),
    example("roundtrip reproduce heidemann-model/table-6", "one table"),
    example(
        "roundtrip reproduce heidemann-model/table-7 --measure",
        "also measured on this machine's kernel",
    ),
    example("roundtrip reproduce heidemann-model --format json", "everything of one paper, as JSON"),
    example("roundtrip reproduce heidemann-model/figure-4 --figures plots", "one figure, written to plots/"),
];

const CONNECTIONS: [Example; 7] = [
    example("roundtrip connections access.log", "every timeout from 1 to 60 s"),
    example(
        "roundtrip connections /var/log/nginx --report connections.html",
        "rotated and compressed logs, with a report in HTML",
    ),
    example("roundtrip connections - --timeout 5,15", "from standard input"),
    example("roundtrip connections access.log --per-client 1,6 --dhttp", "other limits, and DHTTP"),
    example(
        "roundtrip connections access.log --distribution --over-time minutes.csv",
        "bytes and requests per connection, connections over time",
    ),
    example(
        "roundtrip connections access.log --client-prefix 24 --format json",
        "/24 networks as clients, as JSON",
    ),
    example(
        "roundtrip connections access.log --log-format '$remote_addr,$msec,$status,$bytes_sent'",
        "a custom log format",
    ),
];

const LOGS: [Example; 2] = [
    example("roundtrip logs synthesize --requests 1000000 > synthetic.log", "a day of a synthetic server"),
    example(
        "roundtrip logs synthesize --curve worldcup98.csv.gz --requests 100000000 -o synthetic.log",
        "with the request rate of another server",
    ),
];

const DIAGNOSE: [Example; 11] = [
    example("roundtrip diagnose slow.pcapng", "every stall, its cause, and what to change"),
    example("roundtrip diagnose slow.pcap.gz --report slow.html", "with time-sequence plots, as HTML"),
    example(
        "roundtrip diagnose --run -- curl -sO http://localhost:8000/a.css",
        "what a command waits for, live",
    ),
    example("roundtrip diagnose --run --isolated -- ./test", "a test and its servers, without root"),
    example("roundtrip diagnose --port 8000 --for 30s", "what a port's connections wait for, live"),
    example("roundtrip diagnose - --format json", "from a pipe, as JSON"),
    example("roundtrip diagnose slow.pcap --cause nagle-delayed-ack", "one cause only"),
    example("roundtrip diagnose slow.pcap --flow :8080 --svg plots", "some connections, and their plots"),
    example("roundtrip diagnose slow.pcap --since 90s", "only events after 90 s"),
    example(
        "roundtrip diagnose --run --runs 3 --fail-on medium,nagle:5 --format junit -- ./test",
        "a gate for CI: findings in most of three runs",
    ),
    example(
        "roundtrip diagnose --run --baseline known.json --format github -- ./test",
        "only new findings fail, as annotations",
    ),
];

const WATCH: [Example; 6] = [
    example("roundtrip watch --port 8000", "stalls of a server's connections, live"),
    example("roundtrip watch --interval 1ms -- ./test", "stalls of a test and its servers, until it ends"),
    example("roundtrip watch --pid 4711 --for 30s", "stalls of one process and its children"),
    example("roundtrip watch --port 8000 --interval 1ms", "stalls of a few milliseconds"),
    example("roundtrip watch --all --format json", "stalls of all sockets, a line of JSON for each"),
    example("roundtrip watch --all --prometheus 127.0.0.1:9100", "stalls of all sockets, as metrics"),
];

const CONTENT: [Example; 4] = [
    example("roundtrip content microscape", "the W3C note's page in every format"),
    example("roundtrip content www --network adsl", "the files in the directory www"),
    example("roundtrip content visit.har --quality 60", "a recorded page visit; also lossy images"),
    example("roundtrip content www --protocol http11 --report content.html", "with a report in HTML"),
];

const PAGE: [Example; 6] = [
    example("roundtrip page visit.har", "hosts, objects and dependencies of a recorded visit"),
    example(
        "roundtrip page visit.har --format toml > page.toml",
        "as a file to change, for --page page.toml",
    ),
    example("roundtrip page trace.json.gz", "the same of a trace of Chromium's DevTools"),
    example("roundtrip page visit.har --plot page.svg", "with a picture of the dependencies"),
    example("roundtrip page visit.har --without ads.example.com", "without a host"),
    example("roundtrip page microscape --format json", "the W3C note's page, as JSON"),
];

const SERVE: [Example; 7] = [
    example("roundtrip serve www", "the directory www at 127.0.0.1:8080"),
    example("roundtrip serve www --access-log -", "log each response, with its channel"),
    example("roundtrip serve www --listen 192.0.2.1:80", "reachable from other hosts"),
    example("roundtrip serve --origin http://127.0.0.1:3000", "in front of a server that knows only HTTP"),
    example("roundtrip serve --config server.toml --check", "validate a configuration"),
    example("roundtrip serve www --profile paper", "as in the paper, on this host only"),
    example(
        "roundtrip serve www --profile paper --with loss-by-prefix",
        "as in the paper, with one extension",
    ),
];

const GATEWAY: [Example; 5] = [
    example("roundtrip gateway", "a proxy at 127.0.0.1:3128"),
    example("http_proxy=http://127.0.0.1:3128 curl http://example.org/", "a client of this proxy"),
    example("chromium --proxy-pac-url=http://127.0.0.1:3128/proxy.pac", "a browser with this proxy"),
    example("roundtrip gateway --cache --disk responses.redb", "cache on disk, which survives restarts"),
    example("roundtrip gateway --verbose --access-log -", "log datagrams, and the channel of responses"),
];

const CACHE: [Example; 5] = [
    example("roundtrip cache --origin http://127.0.0.1:3000", "in front of a server on this host"),
    example("roundtrip cache --origin http://127.0.0.1:3000 --memory 2GiB", "with more memory"),
    example("roundtrip get -v dhttp://127.0.0.1:8080/", "a request to it"),
    example("roundtrip cache --intercept 80,8080 --inside lan0", "on a router: requests from its inside"),
    example("roundtrip get --caches any dhttp://192.0.2.1/", "a client that accepts its responses"),
];

const NAT: [Example; 5] = [
    example("roundtrip nat --inside lan0 --outside wan0", "on a router that translates addresses"),
    example(
        "roundtrip nat --inside lan0 --outside wan0 --firewall --closed",
        "on a firewall without translation",
    ),
    example(
        "roundtrip nat --inside lan0 --outside wan0 --by-id",
        "a connection must begin with a request's id",
    ),
    example(
        "roundtrip nat --inside lan0 --outside wan0 --print-rules",
        "the nftables rules it would install",
    ),
    example("roundtrip nat --inside lan0 --outside wan0 --clean", "remove the rules of a killed helper"),
];

const GET: [Example; 4] = [
    example("roundtrip get dhttp://127.0.0.1:8080/", "one datagram each way"),
    example("roundtrip get -v dhttp://127.0.0.1:8080/", "with a log of datagrams and connections"),
    example("roundtrip get -o page.html http://example.org/", "plain HTTP from a server without DHTTP"),
    example(
        "roundtrip get --ports 40000-40009 dhttp://127.0.0.1:8080/",
        "through a firewall that admits these ports",
    ),
];

const LAB: [Example; 2] = [
    example("roundtrip lab", "the laboratory in a browser"),
    example("roundtrip lab --directory target/lab", "as `./ci.sh lab` built it"),
];

const LOAD: [Example; 17] = [
    example("roundtrip load http://127.0.0.1:3000/api", "10 users request this URL for 10 seconds"),
    example(
        "roundtrip load http://127.0.0.1:3000/api --users 50 --for 30s --fail-on p99=50ms",
        "50 users; exit status 1 if the 99th percentile is above 50 ms",
    ),
    example(
        "roundtrip load http://127.0.0.1:3000/api --rate 500 --for 30s",
        "500 requests a second, whatever the server does",
    ),
    example(
        "roundtrip load http://127.0.0.1:3000/orders --body @order.json -H 'Content-Type: application/json'",
        "POST with a body",
    ),
    example("roundtrip load --requests requests.txt --users 20", "the requests of a file, in turn"),
    example(
        "roundtrip load http://127.0.0.1:3000 --replay access.log --speed 10",
        "the requests of an access log, ten times as fast",
    ),
    example(
        "roundtrip load https://127.0.0.1:8443/ --protocol http2 --insecure",
        "HTTP/2 over TLS, with any certificate",
    ),
    example(
        "roundtrip load http://127.0.0.1:8080/ --surge www --users 100 --protocol dhttp",
        "SURGE's users of the site in www, by DHTTP",
    ),
    example(
        "roundtrip load --network modem --users 3 --protocol dhttp",
        "three users behind one emulated modem",
    ),
    example("roundtrip load plan", "SURGE: the requests of 100 users in two minutes"),
    example("roundtrip load plan --users 1000 --for 60s -o plan.txt", "the same as a file, for 1,000 users"),
    example(
        "roundtrip load plan --rate 100:30s,200:30s -o plan.txt",
        "requests at given rates, whatever the server does",
    ),
    example(
        "roundtrip load plan --laws-of access.log --users 500 -o plan.txt",
        "distributions of a site's log, with their goodness of fit",
    ),
    example(
        "roundtrip load plan --replay access.log --speed 10 -o plan.txt",
        "the requests of a log, ten times as fast",
    ),
    example(
        "roundtrip load http://10.0.0.7/ --plan plan.txt --shard 2/8 --log shard-2.hlog",
        "the second of eight shards of a plan, results in a file",
    ),
    example("roundtrip load merge shard-1.hlog shard-2.hlog -o merged.hlog", "merge the results of shards"),
    example("roundtrip load page merged.hlog other.hlog -o page.html", "compare two runs in HTML"),
];

const SITE: [Example; 3] = [
    example("roundtrip site microscape www", "43 files in the directory www"),
    example("roundtrip site surge www --plan plan.txt", "the files that the plan requests"),
    example("roundtrip site microscape www --seed 2", "other words and pixels, the same sizes"),
];

const LIST: [Example; 2] = [
    example("roundtrip list", "everything that has a name, with its source"),
    example("roundtrip list networks --format json", "one kind, as JSON"),
];

const COMPLETIONS: [Example; 2] = [
    example("roundtrip completions bash > ~/.local/share/bash-completion/completions/roundtrip", "for bash"),
    example("roundtrip completions fish > ~/.config/fish/completions/roundtrip.fish", "for fish"),
];

const MAN: [Example; 2] = [
    example("roundtrip man | man -l -", "the program's manual page"),
    example("roundtrip man predict > roundtrip-predict.1", "the manual page of one verb"),
];
