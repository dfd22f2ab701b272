//! Loops over time, and by what they have in common.

use std::collections::BTreeMap;

use deloop_policy::undated;
use deloop_types::Millis;
use maud::{Markup, html};

use crate::scan::numbers::{count, dollars, plural};
use crate::scan::report::LoopRow;

const DAY: i64 = 86_400_000;
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 180.0;
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 24.0;
/// The fewest bars.
const FEWEST: i64 = 14;

/// How much a loop counts for: its dollars, or its turns where no loop has a price.
#[derive(Clone, Copy, PartialEq)]
enum Measure {
    Dollars,
    Turns,
}

impl Measure {
    fn of(loops: &[LoopRow]) -> Self {
        if loops.iter().any(|l| l.spend.usd > 0.0) { Self::Dollars } else { Self::Turns }
    }

    fn amount(self, one: &LoopRow) -> f64 {
        match self {
            Self::Dollars => one.spend.usd,
            Self::Turns => f64::from(crate::replay::small(one.repeated.len() as u64)),
        }
    }

    fn text(self, amount: f64) -> String {
        match self {
            Self::Dollars => dollars(amount),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of turns")]
            Self::Turns => plural(amount as u64, "turn"),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Dollars => "Dollars spent on repeats",
            Self::Turns => "Turns repeated",
        }
    }
}

/// What the loops of one bar come to.
#[derive(Default, Clone)]
struct Sum {
    amount: f64,
    loops: u64,
    /// Some of it has no price.
    unpriced: bool,
}

impl Sum {
    fn add(&mut self, one: &LoopRow, measure: Measure) {
        self.amount += measure.amount(one);
        self.loops += 1;
        self.unpriced |= one.spend.unpriced_tokens > 0;
    }

    fn text(&self, measure: Measure) -> String {
        match (measure, self.unpriced) {
            (Measure::Dollars, true) if self.amount == 0.0 => "price unknown".to_owned(),
            _ => measure.text(self.amount),
        }
    }
}

/// A bar per day, week or month.
pub(super) fn over_time(loops: &[LoopRow]) -> Markup {
    let measure = Measure::of(loops);
    let dated: Vec<(i64, &LoopRow)> = loops
        .iter()
        .filter_map(|l| Some((Millis::parse(l.started.as_deref()?)?.0.div_euclid(DAY), l)))
        .collect();
    let (Some(first), Some(last)) = (dated.iter().map(|d| d.0).min(), dated.iter().map(|d| d.0).max()) else {
        return html! {};
    };
    let span = last - first + 1;
    let (step, name) = match span {
        ..=45 => (1, "day"),
        46..=320 => (7, "week"),
        _ => (30, "30 days"),
    };
    // A few empty days before a single one, so that it reads as a bar and not as a block.
    let needed = (span + step - 1) / step;
    let bars = usize::try_from(needed.max(FEWEST)).unwrap_or(1);
    let first = first - (FEWEST - needed).max(0) * step;
    let mut sums: Vec<Sum> = vec![Sum::default(); bars];
    for (day, one) in &dated {
        if let Some(sum) = usize::try_from((day - first) / step).ok().and_then(|i| sums.get_mut(i)) {
            sum.add(one, measure);
        }
    }
    let most = sums.iter().map(|s| s.amount).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let top = nice(most);
    let date = |index: usize| {
        let days = first + i64::try_from(index).unwrap_or(0) * step;
        super::day(&Millis(days * DAY).to_string()).to_owned()
    };
    let plot = HEIGHT - BOTTOM - 8.0;
    let y = |amount: f64| 8.0 + plot * (1.0 - amount / top);
    #[expect(clippy::cast_precision_loss, reason = "pixels")]
    let slot = (WIDTH - LEFT) / bars as f64;
    #[expect(clippy::cast_precision_loss, reason = "pixels")]
    let x = |index: usize| LEFT + slot * index as f64;
    let every = bars.div_ceil(6);
    html! {
        section.chart aria-label="Loops over time" {
            h2 { (measure.title()) " per " (name) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(format!("{} per {name}", measure.title())) {
                @for line in [0.0, top / 2.0, top] {
                    line.grid x1=(LEFT) x2=(WIDTH) y1=(round(y(line))) y2=(round(y(line))) {}
                    text.axis x=(LEFT - 8.0) y=(round(y(line) + 4.0)) text-anchor="end" { (axis(measure, line)) }
                }
                @for (index, sum) in sums.iter().enumerate() {
                    @if sum.loops > 0 {
                        g.bar {
                            title { (date(index)) ": " (sum.text(measure)) ", " (plural(sum.loops, "loop")) }
                            rect.hit x=(round(x(index))) width=(round(slot)) y="0" height=(round(8.0 + plot)) {}
                            rect.fill x=(round(x(index) + slot * 0.14)) width=(round((slot * 0.72).min(44.0)))
                                y=(round(y(sum.amount).min(y(0.0) - 2.0))) height=(round((plot * sum.amount / top).max(2.0))) rx="2" {}
                        }
                    }
                    @if index % every == 0 {
                        @let end = x(index) > WIDTH - 80.0;
                        text.axis x=(if end { round(WIDTH) } else { round(x(index) + slot * 0.14) }) y=(HEIGHT - 6.0)
                            text-anchor=(if end { "end" } else { "start" }) { (date(index)) }
                    }
                }
            }
        }
    }
}

fn axis(measure: Measure, amount: f64) -> String {
    match measure {
        Measure::Dollars if amount >= 10.0 => format!("${amount:.0}"),
        Measure::Dollars => format!("${amount:.2}"),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of turns")]
        Measure::Turns => count(amount as u64),
    }
}

/// The least round number that is not less.
fn nice(amount: f64) -> f64 {
    let tens = 10_f64.powf(amount.log10().floor());
    [1.0, 1.2, 1.6, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0]
        .into_iter()
        .map(|m| m * tens)
        .find(|m| *m >= amount * 0.999)
        .unwrap_or(amount)
}

fn round(value: f64) -> String {
    format!("{value:.1}")
}

/// By agent, model, tool and pattern.
pub(super) fn breakdowns(loops: &[LoopRow]) -> Markup {
    let measure = Measure::of(loops);
    let none = || "–".to_owned();
    html! {
        section.breakdowns aria-label="What loops have in common" {
            (breakdown("By agent", measure, loops, |l| l.format.clone()))
            (breakdown("By model", measure, loops, |l| l.model.as_deref().map_or_else(none, |m| undated(m).to_owned())))
            (breakdown("By tool", measure, loops, |l| l.tool.clone().unwrap_or_else(none)))
            (breakdown("By pattern", measure, loops, |l| l.detector.clone()))
        }
    }
}

fn breakdown(title: &str, measure: Measure, loops: &[LoopRow], key: impl Fn(&LoopRow) -> String) -> Markup {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for one in loops {
        sums.entry(key(one)).or_default().add(one, measure);
    }
    let mut rows: Vec<(String, Sum)> = sums.into_iter().collect();
    rows.sort_by(|(_, a), (_, b)| b.amount.total_cmp(&a.amount).then_with(|| b.loops.cmp(&a.loops)));
    let most = rows.iter().map(|(_, sum)| sum.amount).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    html! {
        div.breakdown {
            h2 { (title) }
            ol {
                @for (name, sum) in rows.iter().take(6) {
                    li {
                        span.name title=(name) { (name) }
                        span.amount { (sum.text(measure)) span.loops { (plural(sum.loops, "loop")) } }
                        span.track { span.fill style=(format!("width:{:.1}%", 100.0 * sum.amount / most)) {} }
                    }
                }
                @if rows.len() > 6 {
                    li.more { "and " (rows.len() - 6) " more" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (amount, top) in [(0.21, 0.3), (1.0, 1.0), (4.12, 6.0), (73.0, 80.0), (0.0031, 0.004)] {
            assert!((nice(amount) - top).abs() < 1e-9, "{amount}: {}", nice(amount));
        }
    }
}
