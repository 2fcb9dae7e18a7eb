//! Storage of a cache, or of a gateway with a cache: location and size.
//!
//! Not the origin: each verb has its own.

use std::path::PathBuf;

use dhttp_proxy::CacheConfig;
use http1::message::is_token;
use quantity::names::Quoted;

use crate::cli::cache::Keeping;
use crate::failure::Failure;

/// Settings in a file.
#[derive(Debug, Default)]
pub struct Written {
    /// `memory`
    pub memory: Option<String>,
    /// `disk`
    pub disk: Option<PathBuf>,
    /// `disk-size`
    pub disk_size: Option<String>,
    /// `targets`
    pub targets: Option<String>,
}

/// From flags, and from the file that they name; flags win. `usual` is the target list where neither has one.
pub fn config(flags: &Keeping, written: Written, usual_targets: &[&str]) -> Result<CacheConfig, Failure> {
    let Keeping { memory, disk, disk_size, targets } = flags;
    let targets = targets.as_ref().or(written.targets.as_ref()).map(|text| field_names(text)).transpose()?;
    let memory = memory.as_ref().or(written.memory.as_ref()).map(|text| size("memory", text)).transpose()?;
    let disk_size = disk_size.as_ref().or(written.disk_size.as_ref());
    let disk_size = disk_size.map(|text| size("disk-size", text)).transpose()?.unwrap_or(4 << 30);
    let usual = CacheConfig::default();
    Ok(CacheConfig {
        memory: memory.unwrap_or(usual.memory),
        disk: disk.clone().or(written.disk).map(|path| (path, disk_size)),
        targets: targets.unwrap_or_else(|| usual_targets.iter().map(|name| (*name).to_owned()).collect()),
        tell: |sentence| eprintln!("roundtrip: {sentence}"),
        ..usual
    })
}

/// Name of the first of these flags that is set.
pub fn said(flags: &Keeping, written: &Written) -> Option<&'static str> {
    let Keeping { memory, disk, disk_size, targets } = flags;
    let said = [
        (memory.is_some() || written.memory.is_some(), "--memory"),
        (disk.is_some() || written.disk.is_some(), "--disk"),
        (disk_size.is_some() || written.disk_size.is_some(), "--disk-size"),
        (targets.is_some() || written.targets.is_some(), "--targets"),
    ];
    said.into_iter().find_map(|(is_said, name)| is_said.then_some(name))
}

/// Field names such as `CDN-Cache-Control,Example-Cache-Control`, or `none`.
fn field_names(text: &str) -> Result<Vec<String>, Failure> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if names.iter().all(|name| is_token(name.as_bytes())) {
        return Ok(names);
    }
    Err(Failure::Value(format!(
        "--targets: {} is not a list of field names; pass one such as CDN-Cache-Control, or none",
        Quoted(text)
    )))
}

/// A size such as `64KiB`, `256MiB`, `2GiB`, or in bytes.
pub fn size(what: &str, text: &str) -> Result<u64, Failure> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: Option<u64> = match text.get(digits.len()..).unwrap_or_default() {
        "" | "B" => Some(1),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        _ => None,
    };
    digits.parse().ok().zip(unit).and_then(|(number, unit): (u64, u64)| number.checked_mul(unit)).ok_or_else(
        || Failure::Value(format!("--{what}: {} is not a size; give one such as 256MiB", Quoted(text))),
    )
}
