//! Distributions of a site's own log in the text of a plan.
//!
//! ```text
//! set site
//! law sizes hybrid 9.112 1.54 181000 0.96 1.21
//! law requests lognormal 8.4 1.6
//! law embedded-sizes none
//! law embedded-requests none
//! law popularity 0.83
//! law objects pareto 1 1.9
//! law active-off weibull 0.382 1.46
//! law inactive-off lognormal 3.2 1.3
//! law session none
//! law depth lognormal 3.1 1.7
//! ```
//!
//! Named sets have only their name after `set`.

use std::fmt::{self, Write};

use super::{PlanTextError, Reader};
use crate::distribution::Distribution;
use crate::set::{DistributionSet, Files, PlanDistributions, SITE, SetName};

pub(super) fn write(distributions: &PlanDistributions, out: &mut dyn Write) -> fmt::Result {
    writeln!(out, "set {}", distributions.name())?;
    let set = match distributions {
        PlanDistributions::Named(_) => return Ok(()),
        PlanDistributions::Site(set) => set,
    };
    let DistributionSet {
        documents,
        embedded,
        popularity,
        objects,
        active_off,
        inactive_off,
        session,
        depth,
    } = &**set;
    writeln!(out, "law sizes {}", DistributionText(Some(documents.sizes)))?;
    writeln!(out, "law requests {}", DistributionText(documents.requests))?;
    writeln!(out, "law embedded-sizes {}", DistributionText(embedded.map(|files| files.sizes)))?;
    writeln!(out, "law embedded-requests {}", DistributionText(embedded.and_then(|files| files.requests)))?;
    writeln!(out, "law popularity {popularity}")?;
    writeln!(out, "law objects {}", DistributionText(Some(*objects)))?;
    writeln!(out, "law active-off {}", DistributionText(Some(*active_off)))?;
    writeln!(out, "law inactive-off {}", DistributionText(Some(*inactive_off)))?;
    writeln!(out, "law session {}", DistributionText(*session))?;
    writeln!(out, "law depth {}", DistributionText(Some(*depth)))
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<PlanDistributions, PlanTextError> {
    let named = reader.header("set ", |value| match value {
        SITE => Some(None),
        name => SetName::named(name).ok().map(Some),
    })?;
    if let Some(name) = named {
        return Ok(PlanDistributions::Named(name));
    }
    let sizes = reader.header("law sizes ", distribution)?;
    let requests = reader.header("law requests ", optional)?;
    let embedded = reader.header("law embedded-sizes ", optional)?;
    let embedded_requests = reader.header("law embedded-requests ", |value| {
        optional(value).filter(|requests| embedded.is_some() || requests.is_none())
    })?;
    Ok(PlanDistributions::Site(Box::new(DistributionSet {
        documents: Files { sizes, requests },
        embedded: embedded.map(|sizes| Files { sizes, requests: embedded_requests }),
        popularity: reader.header("law popularity ", |value| {
            value.parse().ok().filter(|exponent| (0.0..=100.0).contains(exponent))
        })?,
        objects: reader.header("law objects ", distribution)?,
        active_off: reader.header("law active-off ", distribution)?,
        inactive_off: reader.header("law inactive-off ", distribution)?,
        session: reader.header("law session ", optional)?,
        depth: reader.header("law depth ", distribution)?,
    })))
}

/// A distribution, or `none`.
struct DistributionText(Option<Distribution>);

impl fmt::Display for DistributionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("none"),
            Some(Distribution::Lognormal { mu, sigma }) => write!(f, "lognormal {mu} {sigma}"),
            Some(Distribution::Pareto { min, shape }) => write!(f, "pareto {min} {shape}"),
            Some(Distribution::Weibull { scale, shape }) => write!(f, "weibull {scale} {shape}"),
            Some(Distribution::InverseGaussian { mean, shape }) => {
                write!(f, "inverse-gaussian {mean} {shape}")
            }
            Some(Distribution::Hybrid { mu, sigma, cut, body, shape }) => {
                write!(f, "hybrid {mu} {sigma} {cut} {body} {shape}")
            }
        }
    }
}

fn optional(text: &str) -> Option<Option<Distribution>> {
    if text == "none" { Some(None) } else { distribution(text).map(Some) }
}

fn distribution(text: &str) -> Option<Distribution> {
    let mut words = text.split(' ');
    let name = words.next()?;
    let numbers = words.map(|word| word.parse().ok().filter(|number: &f64| number.is_finite()));
    let numbers: Vec<f64> = numbers.collect::<Option<_>>()?;
    // Neither so small nor so large that computations underflow or overflow.
    let is_positive = |number: f64| (1e-6..=1e15).contains(&number);
    let distribution = match (name, numbers.as_slice()) {
        ("lognormal", &[mu, sigma]) => Distribution::Lognormal { mu, sigma },
        ("pareto", &[min, shape]) => Distribution::Pareto { min, shape },
        ("weibull", &[scale, shape]) => Distribution::Weibull { scale, shape },
        ("inverse-gaussian", &[mean, shape]) => Distribution::InverseGaussian { mean, shape },
        ("hybrid", &[mu, sigma, cut, body, shape]) => Distribution::Hybrid { mu, sigma, cut, body, shape },
        _ => return None,
    };
    let is_valid = match distribution {
        Distribution::Lognormal { mu, sigma } => mu.abs() <= 100.0 && is_positive(sigma),
        Distribution::Pareto { min: first, shape: second }
        | Distribution::Weibull { scale: first, shape: second }
        | Distribution::InverseGaussian { mean: first, shape: second } => {
            is_positive(first) && is_positive(second)
        }
        Distribution::Hybrid { mu, sigma, cut, body, shape } => {
            mu.abs() <= 100.0 && [sigma, cut, shape].into_iter().all(is_positive) && body > 0.0 && body < 1.0
        }
    };
    is_valid.then_some(distribution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distribution_round_trips_and_impossible_ones_are_rejected() {
        for text in [
            "lognormal -1.5 0.8",
            "pareto 1 2.43",
            "weibull 0.382 1.46",
            "inverse-gaussian 3.86 9.46",
            "hybrid 9.357 1.318 133000 0.93 1.1",
        ] {
            assert_eq!(DistributionText(distribution(text)).to_string(), text);
        }
        for malformed in [
            "",
            "pareto",
            "pareto 1",
            "pareto 1 2 3",
            "pareto 0 1",
            "pareto 1 -1",
            "pareto 1 NaN",
            "lognormal 1e9 1",
            "weibull inf 1",
            "hybrid 1 1 1 1 1",
            "normal 1 1",
        ] {
            assert_eq!(distribution(malformed), None, "{malformed}");
        }
    }
}
