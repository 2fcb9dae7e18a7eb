//! Sets of distributions: by name, or those of a site's own log.
//!
//! The set of 1998 is that of SURGE's paper and of `papers/dhttp#section-vi-b`. That of 1999 is from
//! Barford, Bestavros, Bradley and Crovella's study of how the Web had changed (World Wide Web 2, 1999). It
//! has separate distributions for documents and for embedded objects, and none for locality: the missing ones
//! are those of 1998.

use quantity::names::{self, Listing, UnknownName};

use crate::distribution::Distribution;

/// Distributions of a site and its users. Sizes are in bytes, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistributionSet {
    /// Files with which pages begin.
    pub documents: Files,
    /// Files that pages embed; `None`: files of the same kind.
    pub embedded: Option<Files>,
    /// Exponent of popularity: the file of rank r is requested floor(C / r^popularity) times.
    pub popularity: f64,
    /// Objects per page, rounded to the nearest whole number.
    pub objects: Distribution,
    /// Pause from one object of a page to the next.
    pub active_off: Distribution,
    /// Pause from one page to the next.
    pub inactive_off: Distribution,
    /// Pages until a user's connections are closed, rounded to the nearest; `None`: unlimited.
    pub session: Option<Distribution>,
    /// Number of files, this one included, requested since its last request.
    pub depth: Distribution,
}

/// Distributions of one kind of files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Files {
    /// Sizes of the files.
    pub sizes: Distribution,
    /// Sizes of *requests*; `None`: unconstrained, sizes are assigned at random.
    pub requests: Option<Distribution>,
}

/// Distributions of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanDistributions {
    /// Published distributions.
    Named(SetName),
    /// Distributions fitted to a site's own log.
    Site(Box<DistributionSet>),
}

/// Name of the distributions of a site's own log.
pub const SITE: &str = "site";

impl PlanDistributions {
    /// Returns the name of the set.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Named(name) => name.name(),
            Self::Site(_) => SITE,
        }
    }

    /// Returns the distributions.
    pub fn set(&self) -> DistributionSet {
        match self {
            Self::Named(name) => name.set(),
            Self::Site(set) => **set,
        }
    }
}

/// A set with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetName {
    /// SURGE's paper (1998).
    Surge1998,
    /// The study of changes in the Web (1999).
    Surge1999,
}

impl SetName {
    /// Every set.
    pub const ALL: [Self; 2] = [Self::Surge1998, Self::Surge1999];

    /// Returns the set of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        names::find("set of distributions", name, &Self::ALL, Self::name)
    }

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        self.listing().name
    }

    /// Returns the description of the name.
    pub const fn listing(self) -> Listing {
        match self {
            Self::Surge1998 => Listing {
                name: "surge-1998",
                description: "files of 11 kB in the middle, pages of 1.6 objects, popular files small",
                source: "Barford and Crovella 1998",
            },
            Self::Surge1999 => Listing {
                name: "surge-1999",
                description: "documents of 2 kB, embedded files of 4 kB, pages of 8 objects, sessions of 4 pages",
                source: "Barford, Bestavros, Bradley and Crovella 1999",
            },
        }
    }

    /// Returns its distributions.
    pub const fn set(self) -> DistributionSet {
        match self {
            Self::Surge1998 => DistributionSet {
                documents: Files {
                    sizes: Distribution::Hybrid {
                        mu: 9.357,
                        sigma: 1.318,
                        cut: 133_000.0,
                        body: 0.93,
                        shape: 1.1,
                    },
                    requests: Some(Distribution::Pareto { min: 1_000.0, shape: 1.0 }),
                },
                embedded: None,
                popularity: ZIPF,
                objects: Distribution::Pareto { min: 1.0, shape: 2.43 },
                active_off: ACTIVE_OFF,
                inactive_off: Distribution::Pareto { min: 1.0, shape: 1.5 },
                session: None,
                depth: DEPTH,
            },
            Self::Surge1999 => DistributionSet {
                // 94.55% of the lognormal are below the start of the tail.
                documents: Files {
                    sizes: Distribution::Hybrid {
                        mu: 7.630,
                        sigma: 1.001,
                        cut: 10_240.0,
                        body: 0.945_5,
                        shape: 1.0,
                    },
                    requests: None,
                },
                embedded: Some(Files {
                    sizes: Distribution::Lognormal { mu: 8.215, sigma: 1.46 },
                    requests: None,
                }),
                popularity: ZIPF,
                objects: Distribution::Pareto { min: 2.0, shape: 1.33 },
                active_off: ACTIVE_OFF,
                inactive_off: Distribution::Pareto { min: 1.0, shape: 1.4 },
                session: Some(Distribution::InverseGaussian { mean: 3.86, shape: 9.46 }),
                depth: DEPTH,
            },
        }
    }
}

/// The file of rank r is requested floor(C / r) times.
const ZIPF: f64 = 1.0;
const ACTIVE_OFF: Distribution = Distribution::Weibull { scale: 0.382, shape: 1.46 };
const DEPTH: Distribution = Distribution::Lognormal { mu: 1.5, sigma: 0.8 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_found_by_name() {
        for named in SetName::ALL {
            assert_eq!(SetName::named(named.name()), Ok(named));
        }
        assert_eq!(SetName::named("surge1998").unwrap_err().nearest(), Some("surge-1998"));
    }

    #[test]
    fn paper_a_seventeenth_of_the_body_fits_one_datagram() {
        // notes: "Only 5.8% of its body fits one datagram."
        let body = Distribution::Lognormal { mu: 9.357, sigma: 1.318 };
        assert!((body.cdf(1_460.0) - 0.058).abs() < 0.001, "{}", body.cdf(1_460.0));
    }

    #[test]
    fn tail_of_1999_begins_where_its_body_ends() {
        let body = Distribution::Lognormal { mu: 7.630, sigma: 1.001 };
        assert!((body.cdf(10_240.0) - 0.945_5).abs() < 1e-4, "{}", body.cdf(10_240.0));
    }
}
