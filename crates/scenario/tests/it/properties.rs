//! Properties that hold for any input of a user.

use page::text as page;
use proptest::prelude::*;
use quantity::{path, print};
use scenario::network::Changes;
use scenario::programs::ProgramKey;
use scenario::spec::{Key, key::PathKey};
use scenario::{Defaults, Network, Scenario, Spec};
use wire::{Bytes, Duration, Rate};

/// Texts that are often valid values, and often nearly valid.
fn any_value() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[0-9]{1,21}",
        "[0-9]{1,4}\\.[0-9]{1,20}",
        "ns|us|ms|s|h|bit|kbit|mibit|gbps|Mbit/s|kB/s|MiB/s|kb|kib|tib|p|%|b",
        "all|none|free|burst:|packets:|first|dependent|warm|delayed|period|model",
        "[+/.:-]",
        Just("small-cluster".to_owned()),
        Just("fast-internet".to_owned()),
        Just("http10-keepalive".to_owned()),
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// Valid values.
fn valid_value(key: Key) -> BoxedStrategy<String> {
    let duration = (0..3_600_000_000_000_u64).prop_map(|nanos| Duration::from_nanos(nanos).to_string());
    let percent = "(100|[0-9]{1,2}(\\.[0-9]{1,18})?)%";
    let one_of = |names: Vec<&'static str>| prop::sample::select(names).prop_map(str::to_owned).boxed();
    let names = |listings: Vec<quantity::names::Listing>| {
        one_of(listings.iter().map(|listing| listing.name).chain(["all"]).collect())
    };
    match key {
        Key::Network => names(Network::listings().collect()),
        Key::Page => prop_oneof![
            names(scenario::Page::listings().collect()),
            "[1-9][0-9]{0,5}(kib)?(/[1-9])?(\\+[1-9][0-9]{0,5}){0,20}"
        ]
        .boxed(),
        Key::Protocol => names(scenario::Protocol::listings().collect()),
        Key::Tls => one_of(scenario::Tls::ALL.map(scenario::Tls::name).into()),
        Key::Stack => names(scenario::Stack::listings().collect()),
        Key::Engine => names(scenario::Engine::ALL.map(scenario::Engine::listing).into()),
        Key::Visit => one_of(vec!["first", "revalidate"]),
        Key::Requests => one_of(vec!["independent", "after-document", "dependent"]),
        Key::Connection => one_of(vec!["cold", "warm"]),
        Key::Sharing => one_of(vec!["none", "temporal", "ensemble"]),
        Key::Acks => one_of(vec!["every-segment", "delayed", "no-delayed"]),
        Key::RequestSize => (1..=65_536_u64).prop_map(|size| size.to_string()).boxed(),
        Key::Parallel => (1..=1_000_u64).prop_map(|parallel| parallel.to_string()).boxed(),
        Key::Runs => (1..=100_000_u64).prop_map(|runs| runs.to_string()).boxed(),
        Key::Seed => any::<u64>().prop_map(|seed| seed.to_string()).boxed(),
        Key::Program(key) => match key {
            ProgramKey::ClientSetup
            | ProgramKey::ClientDns
            | ProgramKey::ClientThink
            | ProgramKey::ClientReading
            | ProgramKey::ClientFlush
            | ProgramKey::ServerSetup
            | ProgramKey::ServerWrite
            | ProgramKey::ClientPause
            | ProgramKey::ClientIdle
            | ProgramKey::ClientFile
            | ProgramKey::ServerIdle => duration.boxed(),
            ProgramKey::IdleAfter => "[1-9][0-9]{0,8}us".boxed(),
            ProgramKey::RtoMin | ProgramKey::RtoInitial => "[1-9][0-9]{0,4}ms".boxed(),
            ProgramKey::ClientPages => (1..=100_u64).prop_map(|pages| pages.to_string()).boxed(),
            ProgramKey::InitialWindow => (1..=65_535_u64).prop_map(|window| window.to_string()).boxed(),
            ProgramKey::Browser => one_of(vec!["chromium", "firefox"]),
            ProgramKey::Http2Client => one_of(vec!["chromium", "firefox", "go", "default"]),
            ProgramKey::Http2Server => one_of(vec!["nginx", "go"]),
            ProgramKey::Http3Client => one_of(vec!["chromium", "quic-go", "quinn"]),
            ProgramKey::Http3Server => one_of(vec!["nginx", "quic-go", "quinn"]),
            ProgramKey::ClientDefect => one_of(vec!["body-with-headers"]),
            ProgramKey::ClientStack => {
                one_of(scenario::Stack::listings().map(|listing| listing.name).collect())
            }
            ProgramKey::ServerChanged => percent.boxed(),
            ProgramKey::Idle => one_of(vec!["kept", "restarted", "decayed", "paced"]),
            ProgramKey::ClientBuffer | ProgramKey::ServerBuffer => {
                (1..=1_048_576_u64).prop_map(|size| size.to_string()).boxed()
            }
            ProgramKey::ClientFirstBytes => "[1-9][0-9]{0,5}(/together)?".boxed(),
            ProgramKey::ClientFlushExplicit => one_of(vec!["never", "first", "idle"]),
            ProgramKey::ClientValidation => one_of(vec!["entity-tags", "dates", "heads"]),
            ProgramKey::ClientCodings => one_of(vec!["deflate", "gzip+br", "zstd+gzip+deflate+br"]),
            ProgramKey::ServerCompression => one_of(vec!["none", "beforehand", "on-the-fly"]),
            ProgramKey::ServerHead => one_of(vec!["together", "apart"]),
            ProgramKey::ServerRequests | ProgramKey::ServerConnections => {
                (1..=1_000_000_u64).prop_map(|count| count.to_string()).boxed()
            }
            ProgramKey::ServerClose => one_of(vec!["careful", "naive"]),
            ProgramKey::Nagle => one_of(vec!["on", "off"]),
            ProgramKey::Dhttp => {
                one_of(vec!["paper", "internet", "paper+parts", "internet+loss-by-prefix+parts"])
            }
            ProgramKey::SendBuffer | ProgramKey::UnsentLimit | ProgramKey::ReceiveBuffer => {
                (1..=1_073_741_824_u64).prop_map(|size| size.to_string()).boxed()
            }
        },
        Key::Processing | Key::Path(PathKey::Rtt | PathKey::DelayUp) => duration.boxed(),
        Key::Path(PathKey::Rate | PathKey::RateUp) => {
            "[1-9][0-9]{0,2}(\\.[0-9]{1,3})?(bit|kbit|mibit|gbit|Mbps|Mbit/s|kB/s|KiB/s)".boxed()
        }
        Key::Path(PathKey::NetworkTrace) => "[a-z]{1,9}(,[a-z/.]{1,9})?".boxed(),
        Key::Path(PathKey::Mss) => (1..=65_495_u64).prop_map(|mss| mss.to_string()).boxed(),
        Key::Path(PathKey::Mtu) => (41..=65_535_u64).prop_map(|mtu| mtu.to_string()).boxed(),
        Key::Path(PathKey::Modem) => "v42bis(:[1-9][0-9]{3}x[1-9][0-9])?(/[1-9][0-9]{0,2}kbit)?|none".boxed(),
        Key::Path(PathKey::Packets(_, packets)) => match packets {
            scenario::spec::key::DirectionKey::Queue => {
                "[0-9]{1,4}p|[0-9]{1,6}(kib)?|[0-9]{1,3}p\\+[0-9]{1,6}|none".boxed()
            }
            scenario::spec::key::DirectionKey::QueueDiscipline => {
                "drop-tail|(fq-)?codel(:[1-9]ms/[1-9][0-9]ms)?".boxed()
            }
            scenario::spec::key::DirectionKey::Loss => prop_oneof![
                percent,
                Just("none".to_owned()),
                prop::collection::vec(percent, 2..=4)
                    .prop_map(|shares| format!("burst:{}", shares.join("/"))),
                "packets:[1-9][0-9]{0,3}(\\+[1-9][0-9]{0,3}){0,30}",
            ]
            .boxed(),
            scenario::spec::key::DirectionKey::Jitter => {
                (duration, "(/free)?").prop_map(|(max, order)| max + &order).boxed()
            }
            scenario::spec::key::DirectionKey::Reordering => {
                (percent, 1..1_000_u64).prop_map(|(share, ms)| format!("{share}/{ms}ms")).boxed()
            }
            scenario::spec::key::DirectionKey::Duplication => percent.boxed(),
        },
    }
}

fn valid_piece(keys: Vec<Key>) -> impl Strategy<Value = (Key, String)> {
    prop::sample::select(keys).prop_flat_map(|key| (Just(key), valid_value(key)))
}

fn valid_spec() -> impl Strategy<Value = Spec> {
    let pieces = prop::collection::vec(valid_piece(Key::ALL.into()), 0..12);
    let path_keys = PathKey::ALL.map(Key::Path).into();
    let changed = (0..Network::all().len(), prop::collection::vec(valid_piece(path_keys), 0..5));
    (pieces, prop::option::of(changed)).prop_map(|(pieces, changed)| {
        let mut spec = Spec::default();
        for (key, value) in pieces {
            spec.set(key, &value).unwrap_or_else(|error| panic!("{key}: {error}"));
        }
        let changed = changed.map(|(network, pieces)| changes(&pieces).applied_to(&Network::all()[network]));
        let is_new = |network: &Network| spec.networks.iter().all(|other| other.name != network.name);
        spec.networks.extend(changed.filter(|network| network.check().is_ok() && is_new(network)));
        spec
    })
}

fn changes(pieces: &[(Key, String)]) -> Changes {
    let mut changes = Changes::default();
    for (key, value) in pieces {
        if let Key::Path(key) = key {
            changes.set(*key, value).unwrap();
        }
    }
    changes
}

/// Invariants that every engine may rely on.
fn is_possible(scenario: &Scenario) -> bool {
    let Scenario {
        network,
        page,
        visit: _,
        protocol: _,
        tls: _,
        stack: _,
        client,
        server,
        programs: _,
        runs,
        seed: _,
    } = scenario;
    network.check().is_ok()
        && page.check().is_ok()
        && (1..=65_536).contains(&client.request.get())
        && (1..=1_000).contains(&client.parallel)
        && server.processing <= Duration::from_secs(3_600)
        && (1..=100_000).contains(runs)
        && network.links().up.delay + network.links().down.delay == network.rtt
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_for_any_key_panics_and_none_makes_an_impossible_scenario(
        pieces in prop::collection::vec((prop::sample::select(Key::ALL.to_vec()), any_value()), 0..6)
    ) {
        let mut spec = Spec::default();
        for (key, value) in pieces {
            let before = spec.clone();
            if let Err(error) = spec.set(key, &value) {
                prop_assert!(!error.to_string().contains(char::is_control));
                prop_assert_eq!(&spec, &before);
            }
        }
        if let Ok(plan) = spec.plan(&Defaults::laboratory()) {
            prop_assert!(plan.scenarios.iter().all(is_possible));
        }
    }

    #[test]
    fn no_text_for_a_file_panics(
        lines in prop::collection::vec((prop::sample::select(Key::ALL.to_vec()), any_value(), 0..6_u8), 0..6),
        tail in any::<String>(),
    ) {
        let line = |(key, value, kind): (Key, String, u8)| match kind {
            0 => format!("{key} = {value}\n"),
            1 => format!("{key} = '{value}'\n"),
            2 => format!("{key} = ['{value}', {{ like = 'modem', {key} = '{value}' }}]\n"),
            3 => format!("[[{key}]]\n"),
            4 => format!("like = 'isdn'\n{key} = \"{value}\"\n"),
            _ => format!("{key} = true {value}\n"),
        };
        let text: String = lines.into_iter().map(line).chain([tail]).collect();
        if let Err(error) = Spec::from_toml(&text, "file") {
            prop_assert!(error.line <= text.matches('\n').count() + 1);
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn specification_round_trips_through_a_file(spec in valid_spec()) {
        let text = spec.to_toml();
        let parsed = Spec::from_toml(&text, "printed");
        prop_assert_eq!(parsed.as_ref().map_err(ToString::to_string), Ok(&spec), "{}", text);
    }

    #[test]
    fn every_scenario_of_a_plan_is_possible(spec in valid_spec()) {
        match spec.plan(&Defaults::predict()) {
            Ok(plan) => prop_assert!(!plan.scenarios.is_empty() && plan.scenarios.iter().all(is_possible)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn quantities_are_printed_and_read_back_unchanged(
        nanos in 0..=3_600_000_000_000_u64,
        millibits in 1_000..=1_000_000_000_000_000_u64,
        size in 1..=(1_u64 << 40),
        (whole, decimals) in (0..100_u64, "[0-9]{0,18}"),
    ) {
        let duration = Duration::from_nanos(nanos);
        prop_assert_eq!(quantity::duration(&duration.to_string()), Ok(duration));
        let rate = Rate::from_millibits_per_second(millibits).unwrap();
        prop_assert_eq!(quantity::rate(&rate.to_string()), Ok(rate));
        let size = Bytes::new(size);
        prop_assert_eq!(quantity::object_size(&size.to_string()), Ok(size));
        let share = quantity::probability(&format!("{whole}.{decimals}0%")[..]);
        if let Ok(share) = share {
            prop_assert_eq!(quantity::probability(&print::probability(share)), Ok(share));
        }
    }

    #[test]
    fn decimals_are_exact_to_the_last_digit(whole in 0..3_600_u64, millionths in 0..1_000_000_u64) {
        let text = format!("{whole}.{millionths:06}s");
        let exact = Duration::from_nanos(whole * 1_000_000_000 + millionths * 1_000);
        prop_assert_eq!(quantity::duration(&text), Ok(exact));
    }

    #[test]
    fn values_of_a_path_and_pages_are_printed_and_read_back_unchanged(
        queue in valid_value(Key::named("queue").unwrap()),
        discipline in valid_value(Key::named("queue-discipline").unwrap()),
        loss in valid_value(Key::named("loss").unwrap()),
        jitter in valid_value(Key::named("jitter").unwrap()),
        reordering in valid_value(Key::named("reordering").unwrap()),
        text in valid_value(Key::Page),
    ) {
        let queue = path::queue(&queue).unwrap();
        prop_assert_eq!(path::queue(&print::queue(queue)), Ok(queue));
        let discipline = path::queue_discipline(&discipline).unwrap();
        prop_assert_eq!(path::queue_discipline(&print::queue_discipline(discipline)), Ok(discipline));
        let loss = path::loss(&loss).unwrap();
        prop_assert_eq!(path::loss(&print::loss(&loss)), Ok(loss));
        let jitter = path::jitter(&jitter).unwrap();
        prop_assert_eq!(path::jitter(&print::jitter(jitter)), Ok(jitter));
        let reordering = path::reordering(&reordering).unwrap();
        prop_assert_eq!(path::reordering(&print::reordering(reordering)), Ok(reordering));
        if let Ok(page) = page::page(&text) {
            prop_assert_eq!(page::page(&page.sizes()).map(|parsed| parsed.objects), Ok(page.objects));
        }
    }
}
