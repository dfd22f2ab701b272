use deloop_detect::short_hash;
use deloop_types::SessionId;

/// Returns whether an episode is one of the share in which deloop stays silent. It depends on nothing but the arguments, so
/// the same episode always gets the same answer. `began` is the step that the episode began at.
///
/// ```
/// use deloop_policy::is_held_out;
/// let held = (0..10_000).filter(|n| is_held_out(&"s1".into(), None, *n, 0.25)).count();
/// assert!((2_300..2_700).contains(&held));
/// assert!(!is_held_out(&"s1".into(), None, 7, 0.0) && is_held_out(&"s1".into(), None, 7, 1.0));
/// ```
#[must_use]
pub fn is_held_out(session: &SessionId, agent: Option<&str>, began: u64, share: f64) -> bool {
    let episode = format!("holdout\0{session}\0{}\0{began}", agent.unwrap_or_default());
    // The 53 highest bits, as a number from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    let place = (short_hash(episode.as_bytes()) >> 11) as f64 / (1_u64 << 53) as f64;
    place < share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_as_asked_for_sessions_agents_and_episodes() {
        for share in [0.01, 0.1, 0.5, 0.9] {
            let held = |test: &dyn Fn(u64) -> bool| (0..10_000).filter(|n| test(*n)).count();
            let counts = [
                held(&|n| is_held_out(&format!("session-{n}").as_str().into(), None, 7, share)),
                held(&|n| is_held_out(&"s".into(), Some(&format!("agent-{n}")), 7, share)),
                held(&|n| is_held_out(&"s".into(), None, n, share)),
            ];
            let deviation = (10_000.0 * share * (1.0 - share)).sqrt();
            for count in counts {
                #[expect(clippy::cast_precision_loss, reason = "at most 10,000")]
                let off = (count as f64 - 10_000.0 * share).abs();
                assert!(off < 4.0 * deviation, "{share}: {count}");
            }
        }
    }

    #[test]
    fn a_larger_share_holds_out_what_a_smaller_one_does() {
        for n in 0..1000 {
            let session = format!("s{n}").as_str().into();
            let held = |share| is_held_out(&session, None, 3, share);
            assert!(!held(0.2) || held(0.4), "{n}");
        }
    }
}
