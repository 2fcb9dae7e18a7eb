//! Networks of today: access links as regulators, standards and measurements describe them.
//!
//! The papers' networks are in `catalogue`. Rates are those of transfers, so they count payload. Losses are
//! those of the medium; a full queue adds its own.

use quantity::names::Listing;
use wire::link::{Loss, QueueLimit};
use wire::{Bytes, Duration, Probability, Rate};

use super::{Direction, Network};

/// A network that is the same in both directions except for the rate.
pub(super) struct ModernNetwork {
    pub(super) listing: Listing,
    rtt: Duration,
    /// Rates towards the client, and towards the server.
    rates: [Rate; 2],
    mss: u64,
    /// Packets lost per million.
    lost: u32,
    queue: QueueLimit,
}

impl ModernNetwork {
    pub(super) fn network(&self) -> Network {
        let Self { listing, rtt, rates: [down, up], mss, lost, queue } = self;
        let loss = Probability::new(f64::from(*lost) / 1e6).filter(|_| *lost > 0);
        let loss = loss.map_or(Loss::None, Loss::Independent);
        let direction = Direction { queue: *queue, loss, ..Direction::default() };
        let own = Network::new(listing.name.to_owned(), *rtt, *down, Bytes::new(*mss));
        let rate_up = (up != down).then_some(*up);
        Network { like: Some(listing.name), rate_up, up: direction.clone(), down: direction, ..own }
    }
}

const fn listing(name: &'static str, description: &'static str, source: &'static str) -> Listing {
    Listing { name, description, source }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Rates from kbit/s, down and up.
const fn kbit([down, up]: [u64; 2]) -> [Rate; 2] {
    [from_kbit(down), from_kbit(up)]
}

const fn from_kbit(kbit: u64) -> Rate {
    Rate::from_bits_per_second(kbit * 1_000).expect("every rate in the table is above zero")
}

const fn packets(count: u64) -> QueueLimit {
    QueueLimit { packets: Some(count), bytes: None }
}

const fn bytes(count: u64) -> QueueLimit {
    QueueLimit { packets: None, bytes: Some(Bytes::new(count)) }
}

/// Ethernet's packets of 1,500 bytes (RFC 894).
const ETHERNET: u64 = 1_460;

/// The default length of a Linux interface's queue (net/ethernet/eth.c, `DEFAULT_TX_QUEUE_LEN`), and of tc-netem(8), by
/// which WebPageTest's agents shape.
const LINUX: QueueLimit = packets(1_000);

pub(super) const CATALOGUE: [ModernNetwork; 10] = [
    ModernNetwork {
        listing: listing(
            "fibre",
            "fibre to the home: 1 Gb/s down, 500 Mb/s up",
            "FCC 24-27; WebPageTest, FIOS; ITU-T G.984.2; Linux txqueuelen",
        ),
        // WebPageTest, www/settings/connectivity.ini.sample: FIOS, 4 ms.
        rtt: ms(4),
        // FCC 24-27 (2024 Section 706 report): the long-term goal, 1 Gb/s down and 500 Mb/s up.
        rates: kbit([1_000_000, 500_000]),
        mss: ETHERNET,
        // ITU-T G.984.2: a bit error ratio below 10^-10, one packet in 800,000.
        lost: 0,
        queue: LINUX,
    },
    ModernNetwork {
        listing: listing(
            "cable",
            "cable modem (DOCSIS): 100 Mb/s down, 20 Mb/s up",
            "FCC 24-27; WebPageTest, Cable; Kreibich et al., Netalyzr, IMC 2010",
        ),
        // WebPageTest, connectivity.ini.sample: Cable, 28 ms.
        rtt: ms(28),
        // FCC 24-27: the benchmark of fixed broadband, 100 Mb/s down and 20 Mb/s up.
        rates: kbit([100_000, 20_000]),
        mss: ETHERNET,
        // WebPageTest, connectivity.ini.sample: Cable, plr=0.
        lost: 0,
        // Kreibich et al., Netalyzr, IMC 2010: modems' buffers cluster at 128 and 256 KB.
        queue: bytes(256 << 10),
    },
    ModernNetwork {
        listing: listing(
            "dsl",
            "DSL: 25 Mb/s down, 3 Mb/s up, PPP over Ethernet",
            "FCC 15-10; WebPageTest, DSL; RFC 2516; Kreibich et al., Netalyzr, IMC 2010",
        ),
        // WebPageTest, connectivity.ini.sample: DSL, 50 ms.
        rtt: ms(50),
        // FCC 15-10 (2015 to 2024): the benchmark that DSL was sold by, 25 Mb/s down and 3 Mb/s up.
        rates: kbit([25_000, 3_000]),
        // RFC 2516, section 7: PPP over Ethernet carries packets of 1,492 bytes.
        mss: ETHERNET - 8,
        // WebPageTest, connectivity.ini.sample: DSL, plr=0.
        lost: 0,
        // As cable's; the smaller of the two clusters.
        queue: bytes(128 << 10),
    },
    ModernNetwork {
        listing: listing("4g", "LTE: 12 Mb/s both ways", "WebPageTest, LTE; tc-netem(8)"),
        // WebPageTest, connectivity.ini.sample: LTE, 70 ms.
        rtt: ms(70),
        // WebPageTest, connectivity.ini.sample: LTE, 12 Mb/s both ways.
        rates: kbit([12_000, 12_000]),
        mss: ETHERNET,
        // WebPageTest, connectivity.ini.sample: LTE, plr=0 (the radio link retransmits, 3GPP TS 36.322).
        lost: 0,
        queue: LINUX,
    },
    ModernNetwork {
        listing: listing(
            "5g",
            "5G in the mid-bands: 100 Mb/s down, 50 Mb/s up",
            "ITU-R M.2410-0; Lighthouse, desktopDense4G; 3GPP TS 38.322; Linux txqueuelen",
        ),
        // Lighthouse, core/config/constants.js: desktopDense4G, 40 ms. Deployments that use 4G's core have about its delay
        // (Narayanan et al., WWW 2020).
        rtt: ms(40),
        // ITU-R M.2410-0, section 4.3: the user experienced data rate, 100 Mb/s down and 50 Mb/s up.
        rates: kbit([100_000, 50_000]),
        mss: ETHERNET,
        // 3GPP TS 38.322: the radio link retransmits.
        lost: 0,
        queue: LINUX,
    },
    ModernNetwork {
        listing: listing("3g", "UMTS with HSPA: 1.6 Mb/s down, 768 kb/s up", "WebPageTest, 3G; tc-netem(8)"),
        // WebPageTest, connectivity.ini.sample: 3G, 300 ms.
        rtt: ms(300),
        // WebPageTest, connectivity.ini.sample: 3G, 1.6 Mb/s down and 768 kb/s up.
        rates: kbit([1_600, 768]),
        mss: ETHERNET,
        // WebPageTest, connectivity.ini.sample: 3G, plr=0.
        lost: 0,
        queue: LINUX,
    },
    ModernNetwork {
        listing: listing(
            "wifi",
            "a wireless LAN alone: 30 Mb/s down, 15 Mb/s up",
            "Firefox, Wi-Fi throttling profile; IEEE 802.11; Linux txqueuelen",
        ),
        // Firefox, devtools/docs/user/network_monitor/throttling: Wi-Fi, 2 ms.
        rtt: ms(2),
        // The same: 30 Mb/s down and 15 Mb/s up.
        rates: kbit([30_000, 15_000]),
        mss: ETHERNET,
        // IEEE 802.11: frames are acknowledged and retransmitted by the link.
        lost: 0,
        queue: LINUX,
    },
    ModernNetwork {
        listing: listing(
            "starlink",
            "satellites in low orbit: 178 Mb/s down, 17 Mb/s up",
            "Michel et al., A First Look at Starlink Performance, IMC 2022; Linux txqueuelen",
        ),
        // Michel et al., IMC 2022: a median of 50 ms to servers in Europe.
        rtt: ms(50),
        // The same: medians of 178 Mb/s down and 17 Mb/s up.
        rates: kbit([178_000, 17_000]),
        mss: ETHERNET,
        // The same: 0.4% of packets of a light load.
        lost: 4_000,
        queue: LINUX,
    },
    ModernNetwork {
        listing: listing(
            "geo-satellite",
            "a geostationary satellite: 100 Mb/s down, 10 Mb/s up",
            "Michel et al., IMC 2022; RFC 2488; ETSI EN 302 307-1",
        ),
        // Michel et al., IMC 2022: about 600 ms.
        rtt: ms(600),
        // Michel et al., IMC 2022: the subscription that Starlink is compared with, 100 Mb/s down and 10 Mb/s up.
        rates: kbit([100_000, 10_000]),
        mss: ETHERNET,
        // ETSI EN 302 307-1 (DVB-S2): quasi error free, one packet in 10^7.
        lost: 0,
        // A bandwidth-delay product, which RFC 2488, section 2, requires in flight: 100 Mb/s for 600 ms.
        queue: bytes(7_500_000),
    },
    ModernNetwork {
        listing: listing(
            "datacenter",
            "between racks: 10 Gb/s, a quarter of a millisecond",
            "Alizadeh et al., Data Center TCP, SIGCOMM 2010; IEEE 802.3",
        ),
        // Alizadeh et al., SIGCOMM 2010: below 250 us between racks without queues.
        rtt: Duration::from_micros(250),
        // The same: its faster links, 10 Gb/s.
        rates: kbit([10_000_000, 10_000_000]),
        mss: ETHERNET,
        // IEEE 802.3: a bit error ratio below 10^-12.
        lost: 0,
        // Alizadeh et al., SIGCOMM 2010: of the 4 MB that a switch's ports share, one takes up to 700 KB.
        queue: bytes(700_000),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_is_possible_and_names_a_source_for_each_constant() {
        let text = include_str!("modern.rs");
        for today in &CATALOGUE {
            let network = today.network();
            assert_eq!(network.check(), Ok(()), "{}", network.name);
            assert_ne!(network.down.queue, QueueLimit::default(), "{}", network.name);
            assert!(!today.listing.source.is_empty());
        }
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let table = lines.iter().position(|line| line.starts_with("pub(super) const CATALOGUE")).unwrap();
        for (number, line) in lines.iter().enumerate().skip(table) {
            let is_constant =
                ["rtt: ", "rates: ", "lost: ", "queue: bytes"].iter().any(|key| line.starts_with(key));
            assert!(!is_constant || lines[number - 1].starts_with("//"), "line {}: {line}", number + 1);
        }
    }
}
