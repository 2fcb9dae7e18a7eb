//! A cache on a path over IPv6: it intercepts requests as over IPv4, which is tested in `tests/it/interception.rs`.
//!
//! Three network namespaces, which are removed when the test ends; without the permission to create them it prints that, and
//! passes.

use crate::node;

use std::sync::Arc;

use dhttp::client::KnownServers;
use dhttp::{Client, ClientConfig, Request, Response, Server, ServerConfig, Url};
use dhttp_proto::client::{Resend, Responders};
use node::{Node, build, cable, router};
use roundtrip_dhttp_proxy::cache::forward_upstream::ForwardUpstream;
use roundtrip_dhttp_proxy::cache::rules::{Interception, rules};
use roundtrip_dhttp_proxy::nft::Family;
use roundtrip_dhttp_proxy::{Cache, CacheConfig};
use testbed::{Error, Topology};
use tokio::runtime::Builder;

/// Nodes: a client, a router, and a server.
fn hosts() -> Result<[Node; 3], Error> {
    let topology = Topology::new().host("client");
    let topology = router(topology, "router").host("server");
    let topology = cable(topology, ["router", "client"], "toclient", &["10.1.1", "fd00:1"]);
    let topology = cable(topology, ["router", "server"], "toserver", &["10.1.2", "fd00:2"]);
    let [client, router, server] = build(topology)?;
    for (host, network) in [(&client, "fd00:1"), (&server, "fd00:2")] {
        host.run(&format!("ip -6 route add default via {network}::1")).map_err(Error::io("add a route"))?;
    }
    Ok([client, router, server])
}

#[test]
fn intercepts_requests_over_ipv6() {
    if !nix::unistd::geteuid().is_root() {
        return skip::report_skip("network namespaces take root");
    }
    if !skip::has_all(&["ip", "nft", "sysctl"]) {
        return;
    }
    let [client, router, server] = match hosts() {
        Ok(hosts) => hosts,
        Err(why) => return skip::refused(&why.to_string()),
    };
    let config = || ServerConfig { threads: 1, ..ServerConfig::internet() }.reaching_anywhere();
    let response = |request: &Request<'_>| {
        let length = if request.target == "/large" { 20_000 } else { 400 };
        let mut response = Response::whole(200, "text/plain", vec![b'6'; length]);
        Arc::make_mut(&mut response.fields).push("Cache-Control", "max-age=60").unwrap();
        response
    };
    let listen = "[fd00:2::2]:80".parse().unwrap();
    let _server = server.inside(|| Server::start(listen, config(), response, None).unwrap());
    let runtime =
        router.inside(|| Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());
    let (handle, listen) = (runtime.handle().clone(), "[::]:3129".parse().unwrap());
    let inside = ["toclient".to_owned()];
    let intercepted = Interception { listen, ports: &[80], inside: &inside, reaches_private: true };
    let _cache = router.inside(|| {
        let onward = ForwardUpstream::start(ClientConfig::internet(), KnownServers::default(), None).unwrap();
        let cache = Cache::new(onward, CacheConfig::default(), handle).unwrap();
        let config = ServerConfig { intercepts: true, ..config() };
        let server = Server::start(listen, config, cache, None).unwrap();
        (server, rules(Family::Ip6, intercepted).install().unwrap())
    });
    let mut config = ClientConfig::internet();
    config.dhttp.responders = Responders::AnyHost;
    // A resend and a race by plain HTTP pass the cache, so that a busy host must not cause one.
    config.races = false;
    config.dhttp.resend = Resend::Fixed { waits: [wire::Duration::from_secs(5); 2] };
    client.inside(|| {
        let client = Client::start(config, KnownServers::default(), None).unwrap();
        for (path, length) in [("/small", 400), ("/large", 20_000)] {
            for how in ["fwd=miss; stored", "roundtrip; hit"] {
                let url: Url = format!("dhttp://[fd00:2::2]:80{path}").parse().unwrap();
                let (_, head, body) = client.get(&url).unwrap().whole().unwrap();
                let status = String::from_utf8_lossy(head.fields.get("Cache-Status").unwrap_or_default());
                assert!(status.contains(how) && body == vec![b'6'; length], "{path}: {status}");
            }
        }
    });
}
