//! `roundtrip cache` as users run it. On a router: its nftables rules, in network namespaces that are removed after
//! the test; without the right to create them the test reports that, and passes. On disk: the state after a kill.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");

/// Runs a script in a network namespace of its own; `None` where none can be created, or nftables is missing.
fn in_namespace(script: &str) -> Option<Output> {
    if !skip::has_all(&["unshare", "nft", "ip", "grep"]) {
        return None;
    }
    let probe = Command::new("unshare")
        .args(["--net", "sh", "-c", "nft list tables && ip rule show"])
        .env("PATH", skip::path())
        .output()
        .unwrap();
    if !probe.status.success() {
        skip::refused("it takes root, or the kernel has no nftables");
        return None;
    }
    let preamble = r#"
        ip link set lo up
        start() {
            "$ROUNDTRIP" cache --intercept 80,8080 --inside lan0 --threads 1 2> "$SAID" &
            cache=$!
            for _ in $(seq 200); do grep -q "intercepting DHTTP" "$SAID" && return; sleep 0.05; done
        }
        rules() { echo "$(nft list tables) / $(ip -4 rule show | grep -c fwmark) / $(ip -4 route show table all | grep -c "local default")"; }
    "#;
    static SCRIPTS: AtomicUsize = AtomicUsize::new(0);
    let number = SCRIPTS.fetch_add(1, Ordering::Relaxed);
    let printed = std::env::temp_dir().join(format!("roundtrip-cache-{}-{number}", std::process::id()));
    let output = Command::new("timeout")
        .args(["30", "unshare", "--net", "sh", "-c", &format!("{preamble}{script}")])
        .env("PATH", skip::path())
        .env("ROUNDTRIP", PROGRAM)
        .env("SAID", &printed)
        .output()
        .unwrap();
    let _ = std::fs::remove_file(printed);
    Some(output)
}

fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn rules_exist_while_the_cache_runs() {
    let Some(output) = in_namespace("start; rules; kill $cache; wait $cache; rules") else { return };
    assert_eq!(lines(&output), ["table ip roundtrip_cache / 1 / 1", "/ 0 / 0"], "{output:?}");
}

#[test]
fn rules_of_a_killed_cache_are_reported_and_removed() {
    let script = r#"start; kill -9 $cache; wait $cache; rules
        "$ROUNDTRIP" cache --intercept 80 --inside lan0 2>&1; echo $?
        "$ROUNDTRIP" cache --clean; rules; "$ROUNDTRIP" cache --clean"#;
    let Some(output) = in_namespace(script) else { return };
    let lines = lines(&output);
    assert_eq!(lines[0], "table ip roundtrip_cache / 1 / 1", "{output:?}");
    assert!(lines[1].contains("--clean"), "{output:?}");
    assert_eq!(lines[2..], ["2", "removed the rules", "/ 0 / 0", "no rules to remove"], "{output:?}");
}

#[test]
fn refused_rules_are_one_sentence_and_nothing_is_left() {
    // Another program's route occupies the one that the cache would add.
    let script = r#"ip -4 route add local default dev lo table 29811
        "$ROUNDTRIP" cache --intercept 80 --inside lan0 2>&1; echo $?; rules"#;
    let Some(output) = in_namespace(script) else { return };
    let lines = lines(&output);
    assert!(lines[0].starts_with("roundtrip: ip refused the rules"), "{output:?}");
    assert_eq!(lines[1..], ["2", "/ 0 / 1"], "{output:?}");
}

#[test]
fn rules_of_other_programs_are_left_alone() {
    // A table of the same name, of one family or of the other; and alongside it another program's policy routing rule.
    let script = r#"for family in ip ip6; do
            nft add table $family roundtrip_cache; nft add chain $family roundtrip_cache theirs; ip rule add fwmark 7 lookup 7
            before="$(nft list ruleset; ip rule show; ip -6 rule show; ip route show table all)"
            "$ROUNDTRIP" cache --intercept 80 --inside lan0 --listen "[::]:3129" 2>&1; echo $?
            test "$before" = "$(nft list ruleset; ip rule show; ip -6 rule show; ip route show table all)" && echo untouched
            nft delete table $family roundtrip_cache; ip rule del fwmark 7
        done"#;
    let Some(output) = in_namespace(script) else { return };
    let lines = lines(&output);
    for (lines_of_family, family) in lines.chunks(3).zip(["ip", "ip6"]) {
        assert!(
            lines_of_family[0].contains(&format!("the table {family} roundtrip_cache is there already")),
            "{output:?}"
        );
        assert_eq!(lines_of_family[1..], ["2", "untouched"], "{output:?}");
    }
    assert_eq!(lines.len(), 6, "{output:?}");
}

#[test]
fn a_kernel_without_tproxy_is_one_sentence_and_nothing_is_half_installed() {
    // nft's error where the module is missing; for IPv6 alone, too, when IPv4's rules are in force already.
    let script = r#"bin=$(mktemp -d); real=$(command -v nft); for lacks in "tproxy" "table ip6.*tproxy"; do
            cat > $bin/nft <<WRAPPER
#!/bin/sh
case "\$*" in *--file*) ;; *) exec $real "\$@";; esac
text=\$(cat)
if echo "\$text" | tr '\n' ' ' | grep -q "$lacks"; then
    echo "/dev/stdin:4:3-20: Error: Could not process rule: No such file or directory" >&2; exit 1
fi
echo "\$text" | $real "\$@"
WRAPPER
            chmod +x $bin/nft
            PATH=$bin:$PATH "$ROUNDTRIP" cache --intercept 80 --inside lan0 --listen "[::]:3129" 2>&1; echo $?; rules
            ip -6 rule show | grep -c fwmark
        done; rm -r $bin"#;
    let Some(output) = in_namespace(script) else { return };
    let lines = lines(&output);
    for lines_of_case in lines.chunks(4) {
        assert!(
            lines_of_case[0].starts_with("roundtrip: nft refused the rules, and nothing is installed"),
            "{output:?}"
        );
        assert!(lines_of_case[0].contains("nft_tproxy"), "{output:?}");
        assert_eq!(lines_of_case[1..], ["2", "/ 0 / 0", "0"], "{output:?}");
    }
    assert_eq!(lines.len(), 8, "{output:?}");
}

#[test]
fn flushed_rules_are_restored_by_a_reload_and_their_absence_is_not_an_error() {
    let script = r#"start; nft flush ruleset; kill -HUP $cache
        for _ in $(seq 200); do grep -q "reloaded the configuration" "$SAID" && break; sleep 0.05; done
        rules; nft flush ruleset; kill $cache; wait $cache; echo $?; rules"#;
    let Some(output) = in_namespace(script) else { return };
    assert_eq!(lines(&output), ["table ip roundtrip_cache / 1 / 1", "0", "/ 0 / 0"], "{output:?}");
}

#[test]
fn rules_are_printed_without_being_installed() {
    let output = Command::new(PROGRAM)
        .args(["cache", "--intercept", "80,8080", "--inside", "lan0", "--print-rules"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("udp dport { 80, 8080 }"), "{text}");
    for (flags, printed) in [
        (&["--intercept", "x"][..], "is not a list of ports"),
        (&["--intercept", "80", "--inside", "lan0", "--listen", "127.0.0.1:3129"], "0.0.0.0"),
        (&["--intercept", "80"], "--inside: name the network interfaces"),
        (&["--intercept", "80", "--inside", "a\"b"], "is not a network interface"),
        (&["--intercept", "3129", "--inside", "lan0"], "that --intercept does not name"),
        (&[], "--origin: missing"),
        (&["--origin", "http://h/", "--memory", "much"], "is not a size"),
    ] {
        let output = Command::new(PROGRAM).arg("cache").args(flags).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains(printed), "{flags:?}: {text}");
    }
}

#[test]
fn a_reload_changes_ports_and_an_invalid_file_changes_nothing() {
    let script = r#"file=$(mktemp); ports() { printf 'intercept = "%s"\ninside = "lan0"\n' "$1" > $file; }
        taken() { nft list ruleset | grep -o "udp dport [{} 0-9,]*@" | tr -d "{}@" | xargs; }
        again() { kill -HUP $cache; for _ in $(seq 200); do grep -q "$1" "$SAID" && return; sleep 0.05; done; }
        start() {
            "$ROUNDTRIP" cache --config $file --listen "$1" --threads 1 2> "$SAID" &
            cache=$!
            for _ in $(seq 200); do grep -q "intercepting DHTTP" "$SAID" && return; sleep 0.05; done
        }
        ports 80; start "[::]:3129"; taken
        ports 80,8080; again "reloaded the configuration"; taken
        ports x; again "configuration is unchanged"; taken
        kill $cache; wait $cache; rm $file; nft list tables; ip -6 rule show | grep -c fwmark"#;
    let Some(output) = in_namespace(script) else { return };
    let in_both_families = |one: &str| format!("{one} {one}");
    let expected = [
        in_both_families("udp dport 80"),
        in_both_families("udp dport 80, 8080"),
        in_both_families("udp dport 80, 8080"),
        "0".to_owned(),
    ];
    assert_eq!(lines(&output), expected, "{output:?}");
}

/// The new rules of IPv4 were in force, and the old ones of IPv6, although the error stated that nothing had changed.
#[test]
fn regress_ports_that_one_family_refuses_change_for_neither() {
    // An nft that changes one word of the IPv6 rules, once it is switched on.
    let script = r#"bin=$(mktemp -d); real=$(command -v nft)
        cat > $bin/nft <<WRAPPER
#!/bin/sh
if [ -e $bin/refuse ]; then sed '/^table ip6/,\$ s/udp dport {/udp nonsense {/' | $real "\$@"; else exec $real "\$@"; fi
WRAPPER
        chmod +x $bin/nft; ports() { printf 'intercept = "%s"\ninside = "lan0"\n' "$1" > $bin/file; }
        taken() { $real list ruleset | grep -o "udp dport [{} 0-9,]*@" | tr -d "{}@" | xargs; }
        again() { kill -HUP $cache; for _ in $(seq 200); do grep -q "$1" "$SAID" && return; sleep 0.05; done; }
        ports 80; PATH=$bin:$PATH "$ROUNDTRIP" cache --config $bin/file --listen "[::]:3129" --threads 1 2> "$SAID" & cache=$!
        for _ in $(seq 200); do grep -q "intercepting DHTTP" "$SAID" && break; sleep 0.05; done
        taken; touch $bin/refuse; ports 80,8080; again "configuration is unchanged"; grep -c "the old ones are in force" "$SAID"; taken
        rm $bin/refuse; again "reloaded the configuration"; taken
        kill $cache; wait $cache; rm -r $bin; nft list tables"#;
    let Some(output) = in_namespace(script) else { return };
    let expected = [
        "udp dport 80 udp dport 80",
        "1",
        "udp dport 80 udp dport 80",
        "udp dport 80, 8080 udp dport 80, 8080",
    ];
    assert_eq!(lines(&output), expected, "{output:?}");
}

#[test]
fn settings_that_need_a_restart_are_named_and_sizes_do_not_need_one() {
    let files = TestFiles::new("sizes", 20, 100_000);
    let origin = RunningProgram::start(&["serve", &files.path("www")]);
    let write = |lines: &str| {
        let text = format!("origin = \"http://{}/\"\n{lines}", origin.1);
        std::fs::write(files.path("cache.toml"), text).unwrap();
    };
    write("listen = \"127.0.0.1:0\"\nmemory = \"64MiB\"\nthreads = 1\n");
    let config = files.path("cache.toml");
    let mut cache = ConfiguredCache::start(&["--config", &config, "--metrics", "127.0.0.1:0"]);
    let address = cache.running.1;
    (0..20).for_each(|number| assert_eq!(fetch(address, number).unwrap().1.len(), 100_000));
    let mut again = |lines: &str| {
        write(lines);
        cache.reload()
    };
    assert_eq!(
        again("listen = \"127.0.0.1:0\"\nmemory = \"1600KiB\"\nthreads = 1\n"),
        "roundtrip: reloaded the configuration"
    );
    let disk = files.path("answers");
    assert_eq!(
        again(&format!("listen = \"127.0.0.2:0\"\nthreads = 2\ndisk = \"{disk}\"\nmemory = \"1600KiB\"\n")),
        "roundtrip: reloaded the configuration; --listen, --disk, --threads have changed; restart to \
         apply them"
    );
    assert_eq!(
        again("listen = \"127.0.0.1:0\"\nmemory = \"1600KiB\"\nthreads = 1\nlimit = [\"body=2MiB\"]\n"),
        "roundtrip: reloaded the configuration; --limit has changed; restart to apply it"
    );
    std::fs::write(&config, "intercept = \"80\"\ninside = \"lan0\"\nlisten = \"0.0.0.0:3129\"\n").unwrap();
    let refused = cache.reload();
    assert!(
        refused.contains("origin and intercept: ") && refused.ends_with("the configuration is unchanged"),
        "{refused}"
    );
    drop(origin);
    // There is capacity for one response in each sixteenth of the store.
    let retained = (0..20).filter(|number| fetch(address, *number).unwrap().0 == "200").count();
    assert!((1..20).contains(&retained), "{retained}");
}

#[test]
fn a_moved_origin_is_found_after_a_reload_and_the_cache_is_preserved() {
    let files = TestFiles::new("moved", 3, 100);
    let [before, after] = [(); 2].map(|()| RunningProgram::start(&["serve", &files.path("www")]));
    let write = |origin: &RunningProgram| {
        std::fs::write(files.path("cache.toml"), format!("origin = \"http://{}/\"\n", origin.1)).unwrap();
    };
    write(&before);
    let mut cache =
        ConfiguredCache::start(&["--config", &files.path("cache.toml"), "--listen", "127.0.0.1:0"]);
    let address = cache.running.1;
    assert_eq!(fetch(address, 0).unwrap().1, content(0, 100));
    write(&after);
    drop(before);
    assert!(cache.reload().contains("reloaded the configuration"));
    for number in 0..2 {
        assert_eq!(fetch(address, number).unwrap(), ("200".to_owned(), content(number, 100)));
    }
    drop(after);
    assert_eq!(fetch(address, 0).unwrap().1, content(0, 100), "it was cached before");
    assert!(fetch(address, 2).unwrap().0.starts_with("50"));
}

/// A cache that is configured by a file, with its output.
struct ConfiguredCache {
    running: RunningProgram,
    printed: Lines<BufReader<ChildStderr>>,
}

impl ConfiguredCache {
    fn start(arguments: &[&str]) -> Self {
        let command = Command::new(PROGRAM).arg("cache").args(arguments).stderr(Stdio::piped()).spawn();
        let mut child = command.unwrap();
        let mut printed = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = printed.next().unwrap().unwrap();
        let address = first.split("dhttp://").nth(1).unwrap().trim_end_matches('/').parse().unwrap();
        Self { running: RunningProgram(child, address), printed }
    }

    /// Makes it reload its file; returns the line that it logs.
    fn reload(&mut self) -> String {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.running.0.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGHUP).unwrap();
        self.printed.next().unwrap().unwrap()
    }
}

/// A program that is killed after the test, with its listening address.
struct RunningProgram(Child, SocketAddr);

impl RunningProgram {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(arguments)
            .args(["--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("dhttp://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        Self(child, address)
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // As with `kill -9`.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory of `count` files, old enough for heuristic freshness.
struct TestFiles(PathBuf);

impl TestFiles {
    fn new(name: &str, count: usize, bytes: usize) -> Self {
        let directory = std::env::temp_dir().join(format!("roundtrip-cache-{name}-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("www")).unwrap();
        for number in 0..count {
            let path = directory.join(format!("www/{number}.txt"));
            std::fs::write(&path, content(number, bytes)).unwrap();
            let old = std::time::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        }
        Self(directory)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for TestFiles {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn content(number: usize, bytes: usize) -> Vec<u8> {
    format!("{number} ").bytes().cycle().take(bytes).collect()
}

/// Status and body of a file, always from the same host.
fn fetch(address: SocketAddr, number: usize) -> Option<(String, Vec<u8>)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    write!(stream, "GET /{number}.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let body = bytes.split_off(end);
    Some((String::from_utf8_lossy(&bytes).split(' ').nth(1)?.to_owned(), body))
}

#[test]
fn a_cache_killed_while_writing_keeps_complete_responses_only() {
    const FILES: usize = 400;
    let files = TestFiles::new("killed", FILES, 3_000);
    let origin = RunningProgram::start(&["serve", &files.path("www")]);
    let (url, disk) = (format!("http://{}", origin.1), files.path("answers"));
    let flags = ["cache", "--origin", &url, "--disk", &disk, "--threads", "1"];
    for part in 0..3 {
        let mut cache = RunningProgram::start(&flags);
        for number in part * 100..(part + 1) * 100 {
            assert_eq!(fetch(cache.1, number), Some(("200".to_owned(), content(number, 3_000))));
        }
        // And during more writes.
        let address = cache.1;
        std::thread::scope(|scope| {
            scope.spawn(|| (300..FILES).map_while(|number| fetch(address, number)).count());
            fetch(address, part);
            cache.0.kill().unwrap();
        });
    }
    drop(origin);
    let cache = RunningProgram::start(&flags);
    let mut survivors = 0;
    for number in 0..FILES {
        let (status, body) = fetch(cache.1, number).unwrap();
        match &*status {
            "200" => {
                assert_eq!(body, content(number, 3_000), "{number}");
                survivors += 1;
            }
            // The origin is gone, and this was not written yet.
            "502" | "503" => {}
            other => panic!("{number}: {other}: {}", String::from_utf8_lossy(&body)),
        }
    }
    assert!(survivors >= 20, "only {survivors} responses survived");
}

#[test]
fn a_full_disk_is_reported_and_does_not_stop_the_cache() {
    if !skip::has_all(&["unshare", "mount", "grep", "cmp"]) {
        return;
    }
    let files = TestFiles::new("full", 60, 100_000);
    std::fs::create_dir_all(files.path("small")).unwrap();
    let script = r#"mount -t tmpfs -o size=4m tmpfs "$MOUNT" || exit 77
        address() { for _ in $(seq 200); do grep -o 'dhttp://[0-9.:]*' "$1" && return; sleep 0.05; done; }
        "$ROUNDTRIP" serve "$WWW" --listen 127.0.0.1:0 2> "$WWW/../origin" & origin=$!
        from=$(address "$WWW/../origin")
        "$ROUNDTRIP" cache --origin "http://${from#dhttp://}" --disk "$MOUNT/answers" --listen 127.0.0.1:0 2> "$WWW/../said" & cache=$!
        at=$(address "$WWW/../said")
        wrong=0
        ask() { "$ROUNDTRIP" get "http://${at#dhttp://}/$1.txt" | cmp -s - "$WWW/$1.txt" || wrong=$((wrong + 1)); }
        for n in $(seq 0 59); do ask $n; done
        for _ in $(seq 400); do grep -q 'stored in memory only' "$WWW/../said" && break; sleep 0.05; done
        for n in 0 1 59; do ask $n; done
        kill $cache $origin; wait
        echo "$wrong $(grep -c 'stored in memory only' "$WWW/../said")""#;
    let output = Command::new("timeout")
        .args(["60", "unshare", "--mount", "sh", "-c", script])
        .env("ROUNDTRIP", PROGRAM)
        .env("MOUNT", files.path("small"))
        .env("WWW", files.path("www"))
        .env("XDG_CACHE_HOME", files.path("known"))
        .output()
        .unwrap();
    if output.status.code() == Some(77) || String::from_utf8_lossy(&output.stderr).contains("unshare failed")
    {
        return skip::report_skip("it takes the right to mount");
    }
    assert_eq!(lines(&output), ["0 1"], "{output:?}");
}

#[test]
fn a_file_that_is_not_a_store_is_refused_in_a_sentence() {
    let files = TestFiles::new("strange", 1, 10);
    let not_a_store = files.path("www/0.txt");
    let flags =
        ["cache", "--origin", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--disk", &not_a_store];
    let output = Command::new(PROGRAM).args(flags).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && text.contains("cannot store responses in"), "{text}");
}
