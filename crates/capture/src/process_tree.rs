//! Processes below a process, as `/proc` has them.

use std::fs;

/// Returns the processes below `process`, parents before their children.
pub(crate) fn descendants(process: u32) -> Vec<u32> {
    let mut to_visit = children(process);
    let mut visited = Vec::new();
    while let Some(process) = to_visit.pop() {
        // A process ID may be reused during the scan: no process is visited twice.
        if !visited.contains(&process) {
            visited.push(process);
            to_visit.extend(children(process));
        }
    }
    visited
}

/// Returns the children of all threads of a process.
pub(crate) fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}
