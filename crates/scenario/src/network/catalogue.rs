//! Named networks: the thirteen of `papers/heidemann-model#table-2`, and today's ([`super::modern`]).
//!
//! The printed bandwidths are rounded. These are the exact ones that reproduce the papers' tables as
//! printed; Mb is 2^20 bits and kB is 1024 bytes there.

use quantity::names::{Listing, UnknownName};
use wire::{Bytes, Duration, Rate};

use super::{Network, modern};

/// Everyday names, and the names that they stand for.
const ALIASES: [(&str, &str); 16] = [
    ("lte", "4g"),
    ("nr", "5g"),
    ("umts", "3g"),
    ("hspa", "3g"),
    ("wlan", "wifi"),
    ("wi-fi", "wifi"),
    ("fiber", "fibre"),
    ("ftth", "fibre"),
    ("docsis", "cable"),
    ("vdsl", "dsl"),
    ("leo", "starlink"),
    ("geo", "geo-satellite"),
    ("satellite", "geo-satellite"),
    ("datacentre", "datacenter"),
    ("data-center", "datacenter"),
    ("dialup", "modem"),
];

impl Network {
    /// The network of that name in letters of either case, or of an everyday name such as `LTE`.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name, with the nearest and all the others.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        let lower = name.to_ascii_lowercase();
        let alias = ALIASES.iter().find(|(alias, _)| *alias == lower);
        let listed = alias.map_or(lower.as_str(), |(_, listed)| listed);
        let find = || Self::all().into_iter().find(|network| network.name == listed);
        find().ok_or_else(|| UnknownName::new("network", name, Self::listings().map(|listing| listing.name)))
    }

    /// The ten networks of the papers' tables III, IV and VI, in their order; `--network all`.
    pub fn ten() -> Vec<Self> {
        CATALOGUE[..10].iter().map(Entry::network).collect()
    }

    /// Every named network: the ten, the three that the model was compared with in Table VIII, then today's.
    pub fn all() -> Vec<Self> {
        let today = modern::CATALOGUE.iter().map(modern::ModernNetwork::network);
        CATALOGUE.iter().map(Entry::network).chain(today).collect()
    }

    /// Whether it is, or was derived from, a network of one of the papers.
    pub fn is_of_the_papers(&self) -> bool {
        CATALOGUE.iter().any(|entry| self.like == Some(entry.listing.name))
    }

    /// Descriptions of the names, in the order of [`Network::all`].
    pub fn listings() -> impl Iterator<Item = Listing> {
        let today = modern::CATALOGUE.iter().map(|today| today.listing);
        CATALOGUE.iter().map(|entry| entry.listing).chain(today)
    }
}

struct Entry {
    listing: Listing,
    rtt: Duration,
    rate: Rate,
    mss: Bytes,
}

impl Entry {
    fn network(&self) -> Network {
        let name = self.listing.name;
        Network { like: Some(name), ..Network::new(name.to_owned(), self.rtt, self.rate, self.mss) }
    }
}

/// One row of the table: the rate in thousandths of a bit per second.
const fn row(
    name: &'static str,
    description: &'static str,
    rtt_us: u64,
    millibits: u64,
    mss: u64,
    source: &'static str,
) -> Entry {
    let listing = Listing { name, description, source };
    let rate = Rate::from_millibits_per_second(millibits).expect("every rate in the table is above zero");
    Entry { listing, rtt: Duration::from_micros(rtt_us), rate, mss: Bytes::new(mss) }
}

const TABLE_2: &str = "papers/heidemann-model#table-2";
/// The three networks of the W3C note, with the bandwidths that the model's authors gave them.
const SECTION_V_E: &str = "papers/heidemann-model#table-2, after papers/w3c#networks";

const CATALOGUE: [Entry; 13] = [
    row("ethernet", "10 Mb/s Ethernet, measured between two workstations", 700, 9_143_583_000, 1460, TABLE_2),
    row("fast-ethernet", "100 Mb/s Ethernet, theoretical", 700, 104_857_600_000, 1460, TABLE_2),
    // 13 kB/s.
    row("slow-internet", "between continents, measured in 1996", 161_000, 106_496_000, 512, TABLE_2),
    // 130 kB/s.
    row("fast-internet", "across one continent, measured in 1996", 89_000, 1_064_960_000, 512, TABLE_2),
    row("modem", "28.8 kb/s modem, server at the other end", 250_000, 28_800_000, 512, TABLE_2),
    row("isdn", "128 kb/s ISDN, server at the other end", 30_000, 128_000_000, 512, TABLE_2),
    row("wan-modem", "28.8 kb/s modem and 100 ms of Internet", 350_000, 28_800_000, 512, TABLE_2),
    row("wan-isdn", "128 kb/s ISDN and 100 ms of Internet", 130_000, 128_000_000, 512, TABLE_2),
    row("adsl", "6 Mb/s ADSL, theoretical", 30_000, 6_291_456_000, 512, TABLE_2),
    row("direcpc", "1 Mb/s satellite, half a second away", 500_000, 1_048_576_000, 512, TABLE_2),
    row("n-ethernet", "the W3C note's LAN: 10 Mb/s Ethernet", 700, 9_143_583_000, 1460, SECTION_V_E),
    // Printed as 1.17 Mb/s with a segment time of 9.52 ms, which this gives and 150 kB/s does not.
    row("n-fast-internet", "the W3C note's WAN: coast to coast", 80_000, 1_226_833_000, 1460, SECTION_V_E),
    // 28.8 x 1024: the printed segment time of 396 ms shows it.
    row("n-modem", "the W3C note's PPP: 28.8 kb/s modem", 150_000, 29_491_200, 1460, SECTION_V_E),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyday_names_and_capitals_are_found() {
        for (alias, listed) in ALIASES {
            assert_eq!(Network::named(alias).unwrap().name, listed);
        }
        assert_eq!(
            ["4G", "LTE", "WiFi"].map(|name| Network::named(name).unwrap().name),
            ["4g", "4g", "wifi"]
        );
        assert!(Network::all().iter().all(|network| ALIASES.iter().all(|(alias, _)| *alias != network.name)));
    }

    #[test]
    fn paper_segment_times_and_windows_come_out_as_printed_in_table_2() {
        let printed = [
            ("ethernet", "1.28", 1),
            ("fast-ethernet", "0.111", 7),
            ("slow-internet", "38.5", 5),
            ("fast-internet", "3.85", 24),
            ("modem", "142", 2),
            ("isdn", "32.0", 1),
            ("wan-modem", "142", 3),
            ("wan-isdn", "32.0", 5),
            ("adsl", "0.651", 47),
            ("direcpc", "3.91", 128),
            ("n-ethernet", "1.28", 1),
            ("n-fast-internet", "9.52", 9),
            ("n-modem", "396", 1),
        ];
        let actual: Vec<_> = Network::all()
            .iter()
            .filter(|network| network.is_of_the_papers())
            .map(|network| {
                let stt_ms = network.segment_time_s() * 1e3;
                let decimals = if stt_ms >= 100.0 {
                    0
                } else if stt_ms >= 10.0 {
                    1
                } else if stt_ms >= 1.0 {
                    2
                } else {
                    3
                };
                (network.name.clone(), format!("{stt_ms:.decimals$}"), network.window_to_fill())
            })
            .collect();
        let printed: Vec<_> = printed.map(|(name, stt, muws)| (name.to_owned(), stt.to_owned(), muws)).into();
        assert_eq!(actual, printed);
    }

    #[test]
    fn network_is_found_by_name_and_a_misspelt_one_suggests_the_nearest() {
        assert!(Network::all().iter().all(|network| Network::named(&network.name).as_ref() == Ok(network)));
        assert_eq!(Network::named("fast-internt").unwrap_err().nearest(), Some("fast-internet"));
    }
}
