use deloop_types::ShortCall;

/// What makes up a swarm, for stores that keep its calls one by one. [`Swarm::from_parts`](crate::Swarm::from_parts)
/// assembles it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwarmParts {
    /// The number and name of the worker in each slot.
    pub workers: Vec<(u64, String)>,
    /// The fingerprint of each recent call and the slot of its worker, oldest first.
    pub calls: Vec<(u64, u32)>,
    /// The same for calls that failed or found nothing.
    pub in_vain: Vec<(u64, u32)>,
    /// The fingerprints whose calls can be shown, in the order of their latest calls.
    pub listed: Vec<(u64, ShortCall)>,
}
