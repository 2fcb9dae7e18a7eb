//! Settings with a few named values: the values of keys that are words.
//!
//! The behaviour itself is in `fetch` and `http1`.

use fetch::Flush;
use http1::server::Closing;
use http1::site::Compression;

use quantity::ValueError;
use quantity::names;
use tcp::stack::Idle;
use tcp::stack::packets::Restart;

/// A setting with a few named values.
pub(super) trait NamedSetting: Copy + 'static {
    /// Kind of the setting, for the error about an unknown value.
    const KIND: &'static str;
    /// Every value.
    const ALL: &'static [Self];

    /// Name in a file.
    fn name(self) -> &'static str;
}

/// The value of that name.
pub(super) fn named<W: NamedSetting>(text: &str) -> Result<W, ValueError> {
    Ok(names::find(W::KIND, text, W::ALL, W::name)?)
}

/// Whether the header section of a response is written together with its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadWrite {
    /// With the first bytes of its body.
    Together,
    /// Separately, as Apache's did in 1996 (`papers/p-http#section-2-2`).
    Apart,
}

impl NamedSetting for HeadWrite {
    const KIND: &'static str = "header write mode";
    const ALL: &'static [Self] = &[Self::Together, Self::Apart];

    fn name(self) -> &'static str {
        match self {
            Self::Together => "together",
            Self::Apart => "apart",
        }
    }
}

/// Validation of cached objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// Conditional requests by entity tag (`If-None-Match`).
    EntityTags,
    /// Conditional requests by date (`If-Modified-Since`).
    Dates,
    /// GET for the document, HEAD for the others: the robot of `papers/w3c` in HTTP/1.0.
    Heads,
}

impl NamedSetting for Validation {
    const KIND: &'static str = "validation method";
    const ALL: &'static [Self] = &[Self::EntityTags, Self::Dates, Self::Heads];

    fn name(self) -> &'static str {
        match self {
            Self::EntityTags => "entity-tags",
            Self::Dates => "dates",
            Self::Heads => "heads",
        }
    }
}

/// Defect of a client's HTTP implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientDefect {
    /// Ignores body bytes that arrive together with the end of the headers, as a widespread browser did in 1996
    /// (`papers/p-http#section-2-5`).
    BodyWithHeaders,
}

impl NamedSetting for ClientDefect {
    const KIND: &'static str = "client defect";
    const ALL: &'static [Self] = &[Self::BodyWithHeaders];

    fn name(self) -> &'static str {
        match self {
            Self::BodyWithHeaders => "body-with-headers",
        }
    }
}

/// Congestion window after idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleWindow {
    /// Unchanged.
    Unchanged,
    /// Reduced to the initial window; since the last segment sent or received, as the stack has it.
    Restarted,
    /// Halved for every timeout (RFC 2861).
    Decayed,
    /// Unchanged, and sent at the rate last measured until the first acknowledgement.
    Paced,
}

impl IdleWindow {
    /// The policy in a stack's terms; `restart` is the stack's own reduction. One that decays restarts since the
    /// last segment sent.
    pub const fn policy(self, restart: Restart) -> (Idle, Restart) {
        match (self, restart) {
            (Self::Unchanged, _) => (Idle::Unchanged, restart),
            (Self::Paced, _) => (Idle::Paced, restart),
            (Self::Decayed, _) => (Idle::Restarted, Restart::Decaying),
            (Self::Restarted, Restart::Decaying) => (Idle::Restarted, Restart::AfterSending),
            (Self::Restarted, Restart::AfterSending | Restart::AfterReceiving) => (Idle::Restarted, restart),
        }
    }
}

impl NamedSetting for IdleWindow {
    const KIND: &'static str = "window after idle";
    const ALL: &'static [Self] = &[Self::Unchanged, Self::Restarted, Self::Decayed, Self::Paced];

    fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "kept",
            Self::Restarted => "restarted",
            Self::Decayed => "decayed",
            Self::Paced => "paced",
        }
    }
}

impl NamedSetting for Closing {
    const KIND: &'static str = "closing method";
    const ALL: &'static [Self] = &[Self::Careful, Self::Naive];

    fn name(self) -> &'static str {
        match self {
            Self::Careful => "careful",
            Self::Naive => "naive",
        }
    }
}

impl NamedSetting for Flush {
    const KIND: &'static str = "explicit flush";
    const ALL: &'static [Self] = &[Self::Never, Self::First, Self::Idle];

    fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::First => "first",
            Self::Idle => "idle",
        }
    }
}

impl NamedSetting for Compression {
    const KIND: &'static str = "compression mode";
    const ALL: &'static [Self] = &[Self::None, Self::Beforehand, Self::OnTheFly];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Beforehand => "beforehand",
            Self::OnTheFly => "on-the-fly",
        }
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
}

impl Switch {
    pub(super) const fn of(is_on: bool) -> Self {
        if is_on { Self::On } else { Self::Off }
    }

    pub(super) fn is_on(self) -> bool {
        self == Self::On
    }
}

impl NamedSetting for Switch {
    const KIND: &'static str = "switch";
    const ALL: &'static [Self] = &[Self::On, Self::Off];

    fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<W: NamedSetting + PartialEq + std::fmt::Debug>() {
        assert!(W::ALL.iter().all(|setting| named::<W>(setting.name()).as_ref() == Ok(setting)));
        let error = named::<W>("no-such-value").unwrap_err().to_string();
        assert!(error.contains(W::KIND), "{error}");
    }

    #[test]
    fn every_value_is_found_by_its_name() {
        check::<HeadWrite>();
        check::<Validation>();
        check::<ClientDefect>();
        check::<IdleWindow>();
        check::<Closing>();
        check::<Flush>();
        check::<Compression>();
        check::<Switch>();
    }
}
