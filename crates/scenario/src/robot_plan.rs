//! A scenario's client as a plan of `fetch`'s robot: the same for every engine that runs programs.

use std::num::NonZeroU16;

use fetch::{Discovery, Hint, Pipelining, Plan, Shape};
use page::Host;

use crate::programs::ClientDefect;
use crate::serving::ServingError;
use crate::{Client, Page, Programs, Protocol, Remark, Serving};

impl Client {
    /// Connection policy of a protocol.
    ///
    /// # Errors
    /// A number of connections that the protocol does not have.
    pub fn shape(&self, protocol: Protocol, pipelining: Pipelining) -> Result<Shape, ServingError> {
        let none = || ServingError { what: "0 connections".to_owned(), remedy: "use --parallel 1" };
        let parallel = NonZeroU16::new(self.parallel).ok_or_else(none)?;
        if let Some((what, remedy)) = self.refused_parallel(protocol) {
            return Err(ServingError { what, remedy });
        }
        Ok(match protocol {
            Protocol::Http10 | Protocol::Ttcp | Protocol::Ardp => Shape::Http10 { parallel },
            Protocol::Http10KeepAlive => Shape::Http10KeepAlive,
            Protocol::Http11 => Shape::Http11,
            Protocol::Http11Parallel => Shape::Http11Parallel { parallel },
            Protocol::Http11Pipelined | Protocol::Http11PipelinedDeflate => {
                Shape::Http11Pipelined(pipelining)
            }
            Protocol::Minimum => {
                let what = "the minimum, which no protocol reaches".to_owned();
                return Err(ServingError { what, remedy: "use --engine model" });
            }
            Protocol::Dhttp => Shape::Dhttp,
            Protocol::Http2 => Shape::Http2,
            Protocol::Http3 => Shape::Http3(Discovery::Known),
            Protocol::Http3Upgrade => Shape::Http3(Discovery::AltSvc),
        })
    }
}

impl Serving {
    /// The robot's plan of one visit to the page, and its deviation from the scenario. Deadlines are the engine's.
    pub fn plan(
        &self,
        page: &Page,
        shape: Shape,
        client: &Client,
        programs: &Programs,
    ) -> (Plan, Option<Remark>) {
        let (release, remark) = client.requests.release(shape);
        let plan = Plan {
            request_size: Some(client.request),
            release: self.release(release),
            browser: self.browser,
            lookups: self.lookups.clone(),
            client_time: self.client_time,
            hints: Hint::of(&page.hosts),
            ignores_body_with_headers: programs.client_defect == Some(ClientDefect::BodyWithHeaders),
            first_bytes: programs.client_first_bytes,
            accepted: self.accepted.clone(),
            embedded: self.embedded.clone(),
            origins: page.hosts.iter().map(Host::authority).collect(),
            ..Plan::new(Host::UNNAMED, self.known().to_vec(), shape)
        };
        (plan, if self.is_graph { Some(Remark::GraphDecides) } else { remark })
    }
}
