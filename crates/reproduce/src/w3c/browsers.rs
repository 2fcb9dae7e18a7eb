//! Ours for Tables 10 and 11: a browser over the modem (`papers/w3c#table-10`), measured.
//!
//! Not the browsers of 1997: Chromium replaces both, nginx replaces Jigsaw, and both ends have a current kernel. The data
//! explains each cell.

use measure::Peers;
use measure::peers::{ClientProgram, ServerProgram};
use scenario::{Client, Connection, Page, Programs, Protocol, Requests, Scenario, Server, Stack, Visit};
use wire::{Duration, Seed};

use super::hosts::{ClientLocation, REQUEST};
use super::{ReproducedValue, overhead};
use crate::laboratory::{KernelResult, Laboratory};
use crate::published::Cell;

/// Jigsaw, and nginx.
pub fn table_10(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    of(ServerProgram::Nginx, cell, measured)
}

/// Apache, and Apache.
pub fn table_11(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    of(ServerProgram::Apache, cell, measured)
}

fn of(server: ServerProgram, cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    let Some((visit, what)) = cell.column.name.split_once('.') else { return Ok(None) };
    let visit = Visit::named(visit).map_err(|unknown| unknown.to_string())?;
    let peers = Peers { server, client: ClientProgram::Chromium };
    let Some(KernelResult { row, processing: _ }) = measured.found_by(peers, &scenario(visit)?)? else {
        return Ok(None);
    };
    let packets = row.packets_up.zip(row.packets_down).map(|(up, down)| up + down);
    Ok(match what {
        "packets" => packets,
        "bytes" => row.payload_bytes,
        "seconds" => row.elapsed_ms.map(|ms| ms / 1e3),
        "overhead" => packets.zip(row.payload_bytes).map(|(packets, bytes)| overhead(packets, bytes)),
        _ => None,
    })
}

/// The browser chooses its requests and its number of connections.
fn scenario(visit: Visit) -> Result<Scenario, String> {
    let reported = |unknown: quantity::names::UnknownName| unknown.to_string();
    Ok(Scenario {
        network: ClientLocation::Ppp.network(),
        page: Page::named("microscape").map_err(reported)?,
        visit,
        protocol: Protocol::Http11,
        stack: Stack::named("linux").map_err(reported)?,
        client: Client {
            request: REQUEST,
            requests: Requests::Dependent,
            parallel: 1,
            connection: Connection::Cold,
        },
        server: Server { processing: Duration::ZERO },
        programs: Programs::default(),
        // "Table 10 and Table 11, which were repeated three times".
        runs: 3,
        seed: Seed::default(),
    })
}
