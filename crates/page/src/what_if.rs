//! Changes of a page, to ask what they would save: pure functions on the graph.
//!
//! Dependents of a removed object wait for what that object waited for, with both delays. A page of which a script is
//! removed may request less than that, so the saving is a lower bound.

use std::fmt;

use quantity::names::Quoted;
use wire::{Bytes, Duration};

use crate::{Dependency, Host, Moment, Page};

/// A change of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Without the objects of this host.
    WithoutHost(String),
    /// Without the objects whose URL (host and path) matches this pattern; `*` stands for any text.
    Block(String),
    /// All objects on the document's host; their server times stay.
    MergeHosts,
    /// Server time of every response of this host.
    ServerTime(String, Duration),
    /// Round trip of this host beyond that of the network.
    HostRtt(String, Duration),
    /// A connection to this host, opened when the document begins to arrive: a `preconnect` in its field `Link`, or first in its head.
    Preconnect(String),
    /// Without think times, and without the time of objects that take no network.
    NoThink,
}

/// Reason why a change does not apply to a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The page has no such host; its hosts.
    #[error("{} is not a host of the page; its hosts: {}", Quoted(.given), listed(.known))]
    UnknownHost {
        /// The given name.
        given: String,
        /// The page's hosts.
        known: Vec<String>,
    },
    /// No object matches the pattern.
    #[error("{} matches no object; `roundtrip page` lists hosts and paths", Quoted(.0))]
    NoMatch(String),
    /// The change would remove the document.
    #[error("{} would remove the document; give a narrower pattern, or another host", Quoted(.0))]
    Document(String),
}

/// The first hosts of a page, and the number of others.
fn listed(hosts: &[String]) -> String {
    const SHOWN: usize = 12;
    let names = hosts[..hosts.len().min(SHOWN)].join(", ");
    match hosts.len().saturating_sub(SHOWN) {
        0 => names,
        more => format!("{names}, and {more} more (`roundtrip page` lists them)"),
    }
}

impl Page {
    /// The page with these changes, one after another. Its name states them.
    ///
    /// # Errors
    /// [`ChangeError`]: an unknown host, a pattern that matches nothing, or the document would be removed.
    pub fn changed(self, changes: &[Change]) -> Result<Self, ChangeError> {
        changes.iter().try_fold(self, |page, change| {
            let name = format!("{}+{change}", page.name);
            Ok(Self { name, ..page.with(change)? })
        })
    }

    fn with(mut self, change: &Change) -> Result<Self, ChangeError> {
        match change {
            Change::WithoutHost(name) => {
                let host = self.host_named(name)?;
                let is_removed: Vec<bool> =
                    self.objects.iter().map(|object| object.host == host && object.local.is_none()).collect();
                self.without_all(&is_removed, name)
            }
            Change::Block(pattern) => {
                let is_removed: Vec<bool> =
                    (0..self.objects.len()).map(|index| matches(pattern, &self.url(index))).collect();
                if !is_removed.contains(&true) {
                    return Err(ChangeError::NoMatch(pattern.clone()));
                }
                self.without_all(&is_removed, pattern)
            }
            Change::MergeHosts => Ok(self.on_one_host()),
            Change::ServerTime(name, time) => {
                let host = self.host_named(name)?;
                self.hosts[host].processing = *time;
                let own = self.objects.iter_mut().filter(|object| object.host == host);
                own.for_each(|object| object.processing = None);
                Ok(self)
            }
            Change::HostRtt(name, rtt) => {
                let host = self.host_named(name)?;
                self.hosts[host].extra_rtt = *rtt;
                Ok(self)
            }
            Change::Preconnect(name) => {
                let host = self.host_named(name)?;
                let at = Moment::Delivered(Bytes::new(1));
                self.hosts[host].hints.preconnect = Some(Dependency { at, ..Dependency::on_end(0) });
                Ok(self)
            }
            Change::NoThink => {
                if let Some(recorded) = &mut self.recorded {
                    (recorded.before_load, recorded.client_time) =
                        (recorded.before_load.map(|_| Duration::ZERO), None);
                }
                for object in &mut self.objects {
                    object.local = object.local.map(|_| Duration::ZERO);
                    for Dependency { on: _, at: _, plus } in &mut object.after {
                        *plus = Duration::ZERO;
                    }
                }
                Ok(self)
            }
        }
    }

    fn without_all(self, is_removed: &[bool], given: &str) -> Result<Self, ChangeError> {
        match is_removed.first() {
            Some(true) => Err(ChangeError::Document(given.to_owned())),
            Some(false) | None => Ok(self.without(is_removed)),
        }
    }

    /// Host and path of an object; `host/12` if its path is unknown.
    pub fn url(&self, index: usize) -> String {
        let object = &self.objects[index];
        match (&object.path, object.local) {
            (Some(path), Some(_)) => path.clone(),
            (Some(path), None) => format!("{}{path}", self.hosts[object.host].name),
            (None, _) => format!("{}/{}", self.hosts[object.host].name, index + 1),
        }
    }

    fn host_named(&self, name: &str) -> Result<usize, ChangeError> {
        let is_it = |host: &Host| host.name.eq_ignore_ascii_case(name);
        self.hosts.iter().position(is_it).ok_or_else(|| ChangeError::UnknownHost {
            given: name.to_owned(),
            known: self.hosts.iter().map(|host| host.name.clone()).collect(),
        })
    }

    fn on_one_host(mut self) -> Self {
        let document = self.objects[0].host;
        for object in self.objects.iter_mut().filter(|object| object.host != document) {
            let own = object.processing.unwrap_or(self.hosts[object.host].processing);
            object.processing = Some(own);
            object.host = document;
        }
        self.without_unused_hosts()
    }
}

/// Whether the pattern occurs in the text; `*` in it stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut rest = text;
    for part in pattern.split('*').filter(|part| !part.is_empty()) {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    true
}

impl Change {
    /// Its name: that of the flag.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::WithoutHost(_) => "without",
            Self::Block(_) => "block",
            Self::MergeHosts => "merge-hosts",
            Self::ServerTime(..) => "server-time",
            Self::HostRtt(..) => "host-rtt",
            Self::Preconnect(_) => "preconnect",
            Self::NoThink => "no-think",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::WithoutHost(host) | Self::Preconnect(host) => write!(f, "={host}"),
            Self::Block(pattern) => write!(f, "={}", pattern.replace(char::is_control, "?")),
            Self::ServerTime(host, time) | Self::HostRtt(host, time) => write!(f, "={host}={time}"),
            Self::MergeHosts | Self::NoThink => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A document, a tag 5 ms after it on another host, and an image 7 ms after the tag.
    fn page() -> Page {
        let object = |host, path: &str, after: Option<(usize, u64)>| Object {
            host,
            path: Some(path.to_owned()),
            processing: Some(ms(3)),
            after: after
                .map(|(on, plus)| Dependency { plus: ms(plus), ..Dependency::on_end(on) })
                .into_iter()
                .collect(),
            ..Object::sized(Bytes::new(100))
        };
        let objects = vec![
            object(0, "/", None),
            object(1, "/tag.js", Some((0, 5))),
            object(0, "/a.png?x=1", Some((1, 7))),
        ];
        let ads = Host { processing: ms(9), extra_rtt: ms(40), ..Host::new("ads.example") };
        Page { hosts: vec![Host::new("www"), ads], ..Page::of("shop", objects) }
    }

    #[test]
    fn what_waited_for_a_removed_object_is_discovered_by_what_that_waited_for() {
        for change in [Change::WithoutHost("ADS.example".to_owned()), Change::Block("ads*/tag".to_owned())] {
            let without = page().changed(&[change]).unwrap();
            assert_eq!((without.objects.len(), without.hosts.len()), (2, 1));
            assert_eq!(without.objects[1].after, [Dependency { on: 0, at: Moment::Ended, plus: ms(12) }]);
            assert_eq!(without.check(), Ok(()));
        }
    }

    #[test]
    fn hosts_are_merged_and_changed() {
        let merged = page().changed(&[Change::MergeHosts]).unwrap();
        assert_eq!((merged.hosts.len(), merged.name.as_str()), (1, "shop+merge-hosts"));
        assert_eq!(merged.objects[1].processing, Some(ms(3)));
        let ads = || "ads.example".to_owned();
        let near =
            page().changed(&[Change::HostRtt(ads(), ms(0)), Change::ServerTime(ads(), ms(20))]).unwrap();
        assert_eq!((near.hosts[1].extra_rtt, near.hosts[1].processing), (ms(0), ms(20)));
        assert_eq!(near.objects[1].processing, None);
    }

    #[test]
    fn a_host_is_connected_to_when_the_document_begins_to_arrive() {
        let page = page().changed(&[Change::Preconnect("ads.example".to_owned())]).unwrap();
        assert_eq!(page.name, "shop+preconnect=ads.example");
        let preconnect = page.hosts[1].hints.preconnect.unwrap();
        assert_eq!((preconnect.to_string().as_str(), page.check()), ("1 at 1 bytes", Ok(())));
        assert!(!page.is_plain() && page.hosts[0].hints == crate::Hints::NONE);
        let without = page.changed(&[Change::Block("tag.js".to_owned())]).unwrap();
        assert_eq!(without.hosts.len(), 1, "a host without objects has no hint");
    }

    #[test]
    fn think_times_are_removed() {
        let quick = page().changed(&[Change::NoThink]).unwrap();
        assert!(quick.objects.iter().flat_map(|object| &object.after).all(|after| after.plus == ms(0)));
    }

    #[test]
    fn changes_that_do_not_apply_name_what_would() {
        let error = |change| page().changed(&[change]).unwrap_err().to_string();
        let unknown = error(Change::WithoutHost("ad".to_owned()));
        assert_eq!(unknown, "`ad` is not a host of the page; its hosts: www, ads.example");
        assert!(error(Change::Block("*.gif".to_owned())).starts_with("`*.gif` matches no object"));
        assert!(error(Change::WithoutHost("www".to_owned())).starts_with("`www` would remove the document"));
        assert!(error(Change::Block("*".to_owned())).contains("would remove the document"));
    }
}
