use deloop_types::{Evidence, Finding, Repeats};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Said;
use crate::{Detector, Happening, Moment, short_hash};

/// Two agents answering each other with nothing new.
pub(crate) struct PingPong;

/// How [`PingPong`] is tuned.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// From how many rounds on it is a finding; a round is one message of each.
    rounds: u64,
    /// How much a message must say the same as one that its agent said before, 0 to 1.
    alike: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { rounds: 3, alike: 0.6 }
    }
}

impl Detector for PingPong {
    type Params = Params;
    type Memory = ();

    fn name(&self) -> &'static str {
        "ping-pong"
    }

    fn page(&self) -> &'static str {
        include_str!("ping-pong.md")
    }

    fn look(&self, params: &Params, moment: &Moment<'_>, (): &mut ()) -> Option<Finding> {
        let Happening::Turn(_) = &moment.event else { return None };
        let said = moment.exchange.said();
        let newest = said.back(0)?;
        let other = said.back(1)?;
        // Back to where somebody did something, or somebody else spoke.
        let between = |(back, turn): &(usize, &Said)| {
            !turn.acted && turn.agent == if back % 2 == 0 { newest.agent } else { other.agent }
        };
        if newest.agent == other.agent {
            return None;
        }
        let turns: Vec<&Said> =
            said.iter().rev().enumerate().take_while(between).map(|(_, turn)| turn).collect();
        // A message is old when its agent has said it before, in this exchange.
        let old = |at: &usize| {
            let before = turns[at + 1..].iter().skip(1).step_by(2);
            before.into_iter().any(|b| b.words.likeness(&turns[*at].words) >= params.alike)
        };
        let stale = (0..turns.len()).take_while(old).count();
        // The first round is new by nature.
        let messages = if stale == 0 { 0 } else { stale + 2 };
        let count = messages as u64 / 2;
        let first = turns.get(messages.saturating_sub(1))?;
        (count >= params.rounds.max(2)).then(|| Finding {
            detector: self.name().to_owned(),
            count,
            period: 2,
            score: newest.words.likeness(&turns.get(2).unwrap_or(&newest).words),
            since: first.step,
            repeats: Repeats::Exchange,
            evidence: Evidence {
                pattern: short_hash(&(newest.agent ^ other.agent).to_le_bytes()),
                at: moment.history.turns(),
                ..Evidence::default()
            },
            ..Finding::default()
        })
    }
}
