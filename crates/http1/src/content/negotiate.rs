//! Codings that a client accepts (RFC 9110, section 12.5.3): `Accept-Encoding: gzip;q=0.5, br, *;q=0`.
//!
//! The caller chooses: it knows the sizes of the bodies.

use super::Coding;
use crate::message::Fields;
use crate::message::field::list;

/// Codings that one client accepts, with their weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedCodings {
    /// For each coding in [`Coding::ALL`], in thousandths; 0: not accepted.
    weights: [u16; Coding::ALL.len()],
}

impl AcceptedCodings {
    /// Reads a request's fields. Without `Accept-Encoding` only `identity` is accepted: the standard would allow anything, but
    /// some clients do not know the field. Invalid members are ignored.
    pub fn of(fields: &Fields) -> Self {
        let mut reported = [None; Coding::ALL.len()];
        let mut others = None;
        for item in fields.all("Accept-Encoding").flat_map(list) {
            let Some((name, weight)) = weighted(item) else { continue };
            match Coding::named(name) {
                Some(coding) => reported[coding as usize] = Some(weight),
                None if name == b"*" => others = Some(weight),
                None => {}
            }
        }
        let of = |coding: Coding| {
            let unsaid = match coding {
                // Acceptable unless excluded, but with the lowest weight.
                Coding::Identity => others.filter(|weight| *weight == 0).unwrap_or(1),
                Coding::Deflate | Coding::Gzip | Coding::Brotli | Coding::Zstd => others.unwrap_or(0),
            };
            reported[coding as usize].unwrap_or(unsaid)
        };
        Self { weights: Coding::ALL.map(of) }
    }

    /// Accepts all of these with equal weight, and `identity` as the last resort.
    pub fn any_of(codings: &[Coding]) -> Self {
        let is_taken = |coding: Coding| codings.contains(&coding) || coding == Coding::Identity;
        let weight = |coding| match (coding, is_taken(coding)) {
            (Coding::Identity, _) => 1,
            (_, true) => 1_000,
            (_, false) => 0,
        };
        Self { weights: Coding::ALL.map(weight) }
    }

    /// Returns the weight of this coding, in thousandths; 0: not accepted.
    pub fn weight(&self, coding: Coding) -> u16 {
        self.weights[coding as usize]
    }

    /// Returns the available coding that the client prefers, given the size in each; of equal weights, the smallest. `None` if
    /// it accepts none of them.
    pub fn best(&self, available: impl IntoIterator<Item = (Coding, usize)>) -> Option<Coding> {
        let acceptable = available.into_iter().filter(|(coding, _)| self.weight(*coding) > 0);
        acceptable
            .min_by_key(|(coding, size)| (std::cmp::Reverse(self.weight(*coding)), *size))
            .map(|(coding, _)| coding)
    }
}

/// Parses a name and its weight in thousandths.
fn weighted(item: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = item.splitn(2, |byte| *byte == b';');
    let name = parts.next()?.trim_ascii();
    let Some(parameter) = parts.next() else { return Some((name, 1_000)) };
    let value = parameter.trim_ascii().strip_prefix(b"q=").or(parameter.trim_ascii().strip_prefix(b"Q="))?;
    Some((name, thousandths(value)?))
}

/// Parses `0` or `1` and up to three decimals.
fn thousandths(value: &[u8]) -> Option<u16> {
    let (whole, digits) = match value {
        [whole, b'.', digits @ ..] => (whole, digits),
        [whole] => (whole, &[][..]),
        _ => return None,
    };
    let mut weight = u16::from(whole.checked_sub(b'0').filter(|digit| *digit <= 1)?) * 1_000;
    let mut scale = 100;
    for digit in digits {
        weight += u16::from(digit.checked_sub(b'0').filter(|digit| *digit <= 9 && scale > 0)?) * scale;
        scale /= 10;
    }
    (weight <= 1_000).then_some(weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(accepted: Option<&str>, available: &[(Coding, usize)]) -> Option<Coding> {
        let mut fields = Fields::new();
        accepted.into_iter().for_each(|accepted| fields.push("Accept-Encoding", accepted).unwrap());
        AcceptedCodings::of(&fields).best(available.iter().copied())
    }

    #[test]
    fn client_gets_the_smallest_of_its_preferred_codings() {
        let all = [
            (Coding::Identity, 100),
            (Coding::Deflate, 40),
            (Coding::Gzip, 41),
            (Coding::Brotli, 30),
            (Coding::Zstd, 35),
        ];
        for (accepted, coding) in [
            (None, Some(Coding::Identity)),
            (Some(""), Some(Coding::Identity)),
            (Some("gzip, deflate, br, zstd"), Some(Coding::Brotli)),
            (Some("gzip, deflate"), Some(Coding::Deflate)),
            (Some("x-gzip"), Some(Coding::Gzip)),
            (Some("br;q=0.5, gzip;q=0.9"), Some(Coding::Gzip)),
            (Some("br;q=0.001, identity"), Some(Coding::Identity)),
            (Some("*"), Some(Coding::Brotli)),
            (Some("br;q=0, *"), Some(Coding::Zstd)),
            (Some("*;q=0"), None),
            (Some("identity;q=0"), None),
            (Some("gzip;q=0"), Some(Coding::Identity)),
            (Some("*;q=0, identity"), Some(Coding::Identity)),
            (Some("gzip;q=2, deflate;q=0.5x, br;x=1, zstd;q=.5"), Some(Coding::Identity)),
            (Some("gzip;q=1.001, zstd;q=0.0001"), Some(Coding::Identity)),
            (Some("gzip ; Q=1.000"), Some(Coding::Gzip)),
        ] {
            assert_eq!(best(accepted, &all), coding, "{accepted:?}");
        }
        // A body that does not shrink is sent unencoded.
        assert_eq!(best(Some("gzip"), &[(Coding::Identity, 9)]), Some(Coding::Identity));
    }
}
