//! The processes of a run, whatever became of their groups and parents: what this process started, adopted, or marked with
//! the run's id.

use deloop_types::Millis;

/// The field of `/proc/ID/stat` with the time at which a process began, counted from the one after its name.
const BEGAN: usize = 19;
/// The milliseconds in a tick of these times, which Linux fixes at 100 per second.
const TICK: i64 = 10;

/// A row of the process table.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has a table that can be read"))]
struct ProcessRow {
    id: u32,
    parent: u32,
    /// Whether it has ended and only waits to be noticed.
    ended: bool,
}

/// Returns the running processes that this one started, directly or not, or adopted, and those that carry `mark`, a variable
/// and its value, in their environment. Only Linux has them.
pub(super) fn started_here(mark: Option<&str>) -> Vec<u32> {
    let rows = rows();
    let own = std::process::id();
    let mut found: Vec<u32> = vec![own];
    if let Some(mark) = mark {
        found.extend(rows.iter().map(|row| row.id).filter(|id| *id != own && is_marked(*id, mark)));
    }
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let children = rows.iter().filter(|row| row.parent == parent && !found.contains(&row.id));
        let children: Vec<u32> = children.map(|row| row.id).collect();
        found.extend(children);
        next += 1;
    }
    found.retain(|id| *id != own && rows.iter().any(|row| row.id == *id && !row.ended));
    found
}

/// Returns the children of this process that have ended and that nobody has noticed yet.
#[cfg_attr(not(unix), expect(dead_code, reason = "only Unix keeps them"))]
pub(super) fn ended_children() -> Vec<u32> {
    let own = std::process::id();
    rows().into_iter().filter(|row| row.ended && row.parent == own).map(|row| row.id).collect()
}

/// Returns when a process began, if the system tells. `now` is the current time.
pub(super) fn began(id: u32, now: Millis) -> Option<Millis> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let ticks: i64 = stat.rsplit_once(')')?.1.split_whitespace().nth(BEGAN)?.parse().ok()?;
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    // Seconds with two decimals.
    let uptime: i64 = uptime.split_whitespace().next()?.replace('.', "").parse().ok()?;
    Some(Millis(now.0 - (uptime - ticks) * TICK))
}

/// Returns how many bytes a process has written so far, if the system counts them.
pub(super) fn written(id: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/io")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("wchar:"))?.trim().parse().ok()
}

#[cfg(target_os = "linux")]
fn rows() -> Vec<ProcessRow> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let row = |id: u32| {
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name of the program, in parentheses, may hold anything.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X");
        Some(ProcessRow { id, parent: fields.next()?.parse().ok()?, ended })
    };
    ids.filter_map(row).collect()
}

/// Other systems have no table that can be read without another program.
#[cfg(not(target_os = "linux"))]
fn rows() -> Vec<ProcessRow> {
    Vec::new()
}

/// Returns whether a process has this variable with this value. The environment of another user's process can't be read.
pub(super) fn is_marked(id: u32, mark: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}
