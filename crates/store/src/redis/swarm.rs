use deloop_detect::{Swarm, SwarmParts};

/// The fields of a swarm by name and value, its calls, its calls in vain, and the fingerprints that are shown.
pub(super) type StoredParts = (Vec<String>, Vec<String>, Vec<String>, Vec<String>);

/// Assembles a swarm from the answer of `READ_SWARM`; `None` when there is no swarm.
pub(super) fn assemble((fields, calls, in_vain, shown): StoredParts) -> Option<Swarm> {
    if fields.is_empty() {
        return None;
    }
    let mut parts = SwarmParts {
        calls: calls.iter().filter_map(|call| fingerprint_and_slot(call)).collect(),
        in_vain: in_vain.iter().filter_map(|call| fingerprint_and_slot(call)).collect(),
        ..SwarmParts::default()
    };
    for field in fields.chunks_exact(2) {
        let Some((kind, name)) = field[0].split_at_checked(1) else { continue };
        let worker = field[1].split_at_checked(16);
        if let ("s", Ok(slot), Some((id, worker))) = (kind, name.parse::<usize>(), worker)
            && slot < Swarm::LEAST.max(Swarm::PER_WORKER * Swarm::MOST_WORKERS) * 2
        {
            parts.workers.resize(parts.workers.len().max(slot + 1), (0, String::new()));
            parts.workers[slot] = (u64::from_str_radix(id, 16).unwrap_or(0), worker.to_owned());
        }
    }
    for about in &shown {
        let name = format!("x{about}");
        let short = fields.chunks_exact(2).find(|field| field[0] == name);
        let short = short.and_then(|field| serde_json::from_str(&field[1]).ok());
        parts.listed.extend(u64::from_str_radix(about, 16).ok().zip(short));
    }
    // As in a file, what can't be read is an empty swarm.
    Some(Swarm::from_parts(parts).unwrap_or_default())
}

fn fingerprint_and_slot(call: &str) -> Option<(u64, u32)> {
    let (about, slot) = call.split_at_checked(16)?;
    Some((u64::from_str_radix(about, 16).ok()?, slot.parse().ok()?))
}
