//! The hosts of a page and the links between them: one client, and its servers behind the client's access link.
//!
//! Each server may be farther away than the network says: a link of its own then adds half of its extra round trip in
//! either direction, and takes no time to transmit. With one server at no extra distance there is one link each way.

use scenario::Network;
use wire::Duration;
use wire::link::Config;

use crate::error::Error;
use crate::web::Web;
use crate::world::{Counters, HostConfig, HostId, LinkId, World};

/// Adds a client's access link, up and down.
pub(crate) fn add_access(world: &mut World<Web>, network: &Network) -> Result<[LinkId; 2], Error> {
    let links = network.links();
    let up = world.add_link(&links.up).map_err(Error::Link)?;
    Ok([up, world.add_link(&links.down).map_err(Error::Link)?])
}

/// Hosts and links of a page in a world.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    pub(crate) client: HostId,
    /// Servers of the page's hosts, in order.
    pub(crate) servers: Vec<HostId>,
    /// The client's access link, up and down.
    access: [LinkId; 2],
}

/// A server and its distance.
pub(crate) struct Server {
    pub(crate) config: HostConfig,
    pub(crate) application: Web,
    /// Round trip beyond the network's.
    pub(crate) extra_rtt: Duration,
}

impl Topology {
    /// Adds a client behind this access link, its servers and their links. The hosts' identifiers follow each other, the client's
    /// first.
    pub(crate) fn build(
        world: &mut World<Web>,
        access: [LinkId; 2],
        (config, application): (HostConfig, Web),
        servers: Vec<Server>,
    ) -> Result<Self, Error> {
        let client = world.add_host(config, application).map_err(Error::Stack)?;
        let mut placed = Vec::new();
        for Server { config, application, extra_rtt } in servers {
            placed.push((world.add_host(config, application).map_err(Error::Stack)?, extra_rtt));
        }
        let [up, down] = access;
        for &(server, extra_rtt) in &placed {
            let there = extra_rtt / 2;
            let far_up = far_link(world, there)?;
            let far_down = far_link(world, extra_rtt - there)?;
            world.add_route(client, server, &[&[up][..], &far_up].concat());
            world.add_route(server, client, &[&far_down[..], &[down]].concat());
        }
        let servers = placed.into_iter().map(|(server, _)| server).collect();
        Ok(Self { client, servers, access })
    }

    /// Packets lost on the access link or dropped by its queue, both ways, so far.
    pub(crate) fn lost(&self, world: &World<Web>) -> u64 {
        let counters = self.access.map(|link| *world.link(link));
        counters.iter().map(|link| link.lost.packets + link.dropped.packets).sum()
    }

    /// Counters of the client, and of all servers together, so far.
    pub(crate) fn counters(&self, world: &World<Web>) -> [Counters; 2] {
        let servers = self.servers.iter().map(|server| world.counters(*server));
        [*world.counters(self.client), servers.fold(Counters::default(), |sum, one| sum.plus(one))]
    }

    /// All hosts, the client first.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = HostId> {
        std::iter::once(self.client).chain(self.servers.iter().copied())
    }
}

/// A link to a server that is farther away; none if it is not.
fn far_link(world: &mut World<Web>, delay: Duration) -> Result<Vec<LinkId>, Error> {
    if delay == Duration::ZERO {
        return Ok(Vec::new());
    }
    let link = Config { delay, ..Config::default() };
    world.add_link(&link).map(|link| vec![link]).map_err(Error::Link)
}
