//! Storage of a cache, or of a gateway with a cache: location and size.

use dhttp_proxy::CacheConfig;
use http1::message::is_token;
use quantity::names::Quoted;

use crate::cli::cache_storage::CacheStorageFlags;
use crate::failure::Failure;

/// Builds the configuration of a cache, with these target fields if no flag names others.
pub fn config(settings: CacheStorageFlags, default_targets: &[&str]) -> Result<CacheConfig, Failure> {
    let CacheStorageFlags { memory, disk, disk_size, targets } = settings;
    let targets = targets.map(|text| field_names(&text)).transpose()?;
    let memory = memory.map(|text| size("memory", &text)).transpose()?;
    let disk_size = disk_size.map(|text| size("disk-size", &text)).transpose()?.unwrap_or(4 << 30);
    let default = CacheConfig::default();
    Ok(CacheConfig {
        memory: memory.unwrap_or(default.memory),
        disk: disk.map(|path| (path, disk_size)),
        targets: targets.unwrap_or_else(|| default_targets.iter().map(|name| (*name).to_owned()).collect()),
        report: |sentence| eprintln!("roundtrip: {sentence}"),
        ..default
    })
}

/// Returns the name of the first of these flags that is set.
pub fn first_given(settings: &CacheStorageFlags) -> Option<&'static str> {
    let CacheStorageFlags { memory, disk, disk_size, targets } = settings;
    let given = [
        (memory.is_some(), "--memory"),
        (disk.is_some(), "--disk"),
        (disk_size.is_some(), "--disk-size"),
        (targets.is_some(), "--targets"),
    ];
    given.into_iter().find_map(|(is_given, name)| is_given.then_some(name))
}

/// Parses field names such as `CDN-Cache-Control,Example-Cache-Control`, or `none`.
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

/// Parses a size such as `64KiB`, `256MiB`, `2GiB`, or in bytes.
pub fn size(flag: &str, text: &str) -> Result<u64, Failure> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: Option<u64> = match text.get(digits.len()..).unwrap_or_default() {
        "" | "B" => Some(1),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        _ => None,
    };
    digits.parse().ok().zip(unit).and_then(|(number, unit): (u64, u64)| number.checked_mul(unit)).ok_or_else(
        || Failure::Value(format!("--{flag}: {} is not a size; give one such as 256MiB", Quoted(text))),
    )
}
