//! `--since`: how far back a scan looks.

use deloop_types::Millis;

const FORM: &str = "`--since` takes 30d, 12h, 2w, 90m or a date like 2026-01-31";

/// Returns the time that `text` names, relative to `now`.
pub(crate) fn since(text: &str, now: Millis) -> Result<Millis, String> {
    let text = text.trim();
    if let Some(unit) = text.chars().last().filter(char::is_ascii_alphabetic)
        && let Ok(count) = text[..text.len() - 1].parse::<u32>()
    {
        let minutes: i64 = match unit {
            'm' => 1,
            'h' => 60,
            'd' => 24 * 60,
            'w' => 7 * 24 * 60,
            _ => return Err(FORM.to_owned()),
        };
        return Ok(Millis(now.0 - i64::from(count) * minutes * 60_000));
    }
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    Millis::parse(&whole).ok_or_else(|| FORM.to_owned())
}

/// Returns the current time of this machine.
#[expect(
    clippy::disallowed_methods,
    reason = "`--since 30d` counts back from today; nothing else here reads the clock"
)]
pub(crate) fn now() -> Millis {
    let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_dates() {
        let now = Millis::parse("2026-03-31T12:00:00Z").unwrap();
        let at = |text| since(text, now).map(|t| t.to_string());
        assert_eq!(at("30d").unwrap(), "2026-03-01T12:00:00Z");
        assert_eq!(at("2w").unwrap(), "2026-03-17T12:00:00Z");
        assert_eq!(at("12h").unwrap(), "2026-03-31T00:00:00Z");
        assert_eq!(at("2026-01-31").unwrap(), "2026-01-31T00:00:00Z");
        assert_eq!(at("2026-01-31T10:00:00+02:00").unwrap(), "2026-01-31T08:00:00Z");
        assert!(at("yesterday").unwrap_err().contains("30d"));
        assert!(at("3y").is_err() && at("").is_err() && at("ü").is_err());
    }
}
