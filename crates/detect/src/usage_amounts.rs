use serde::{Deserialize, Serialize};

/// How much of a limit is added each time a person lets work continue after reaching it.
pub const RAISE: f64 = 0.5;

/// What a session or a project used, or may use. As a limit, 0 means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageAmounts {
    /// Input, output and cache writes in tokens, and a tenth of the cache reads.
    pub tokens: u64,
    /// Dollars. Requests to models without a price add nothing.
    pub usd: f64,
    /// Steps.
    pub steps: u64,
    /// Turns of all agents.
    pub turns: u64,
    /// Subagents.
    pub subagents: u64,
    /// Minutes of active time.
    pub minutes: f64,
}

/// How much of a limit is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitShare {
    /// What is limited: `dollars`, `tokens`, `turns`, `subagents`, `minutes` or `steps`.
    pub unit: &'static str,
    /// The name of the setting, such as `usd`.
    pub key: &'static str,
    /// The amount used.
    pub used: f64,
    /// The limit.
    pub limit: f64,
}

impl LimitShare {
    /// Returns the percentage used, rounded down.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub fn percent(&self) -> u64 {
        (self.share() * 100.0).floor() as u64
    }

    /// Formats an amount of this unit.
    #[must_use]
    pub fn amount(&self, n: f64) -> String {
        match self.unit {
            "dollars" => format!("{n:.2}"),
            // Most are counts, and writing those as floating-point numbers is slow.
            _ if n.fract() == 0.0 && n.abs() < 1e15 => format!("{}", n as i64),
            _ => format!("{n:.0}"),
        }
    }

    fn share(&self) -> f64 {
        if self.limit > 0.0 { self.used / self.limit } else { 0.0 }
    }
}

impl UsageAmounts {
    /// Returns the amounts next to the limits that are set, each raised by half as often as `raises` says.
    #[expect(clippy::cast_precision_loss, reason = "percents need no more")]
    pub fn shares(&self, limits: &Self, raises: u32) -> impl Iterator<Item = LimitShare> {
        let factor = 1.0 + RAISE * f64::from(raises);
        let part = |key, unit, used, limit: f64| LimitShare { unit, key, used, limit: limit * factor };
        [
            part("usd", "dollars", self.usd, limits.usd),
            part("tokens", "tokens", self.tokens as f64, limits.tokens as f64),
            part("turns", "turns", self.turns as f64, limits.turns as f64),
            part("subagents", "subagents", self.subagents as f64, limits.subagents as f64),
            part("minutes", "minutes", self.minutes, limits.minutes),
            part("steps", "steps", self.steps as f64, limits.steps as f64),
        ]
        .into_iter()
        .filter(|share| share.limit > 0.0)
    }

    /// Returns the limit closest to exhaustion; `None` if no limit is set.
    ///
    /// ```
    /// use deloop_detect::UsageAmounts;
    /// let used = UsageAmounts { usd: 4.0, turns: 95, ..UsageAmounts::default() };
    /// let limits = UsageAmounts { usd: 5.0, turns: 100, ..UsageAmounts::default() };
    /// let closest = used.closest(&limits, 0).unwrap();
    /// assert_eq!((closest.key, closest.percent()), ("turns", 95));
    /// assert_eq!(used.closest(&limits, 1).unwrap().percent(), 63);
    /// ```
    #[must_use]
    pub fn closest(&self, limits: &Self, raises: u32) -> Option<LimitShare> {
        self.shares(limits, raises).max_by(|a, b| a.share().total_cmp(&b.share()))
    }
}
