//! The spans of a trace as a tree, and their starts and ends in order.

use std::collections::HashMap;

use super::span::{Span, SpanKind};

/// A trace's spans and how they hang together.
pub(super) struct Tree<'a> {
    spans: &'a [Span],
    kinds: Vec<SpanKind>,
    parents: Vec<Option<usize>>,
    /// The nearest agent above.
    owners: Vec<Option<usize>>,
    moments: Vec<(SpanEdge, usize)>,
}

/// One end of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanEdge {
    Start,
    End,
}

impl<'a> Tree<'a> {
    pub(super) fn new(spans: &'a [Span]) -> Self {
        let kinds = spans.iter().map(Span::kind).collect();
        let mut tree = Self {
            spans,
            kinds,
            parents: parents(spans),
            owners: vec![None; spans.len()],
            moments: Vec::new(),
        };
        tree.order();
        tree
    }

    pub(super) fn span(&self, index: usize) -> &'a Span {
        &self.spans[index]
    }

    pub(super) fn kind(&self, index: usize) -> SpanKind {
        self.kinds[index]
    }

    pub(super) fn parent(&self, index: usize) -> Option<usize> {
        self.parents[index]
    }

    /// The nearest agent above a span.
    pub(super) fn owner(&self, index: usize) -> Option<usize> {
        self.owners[index]
    }

    /// The first agent.
    pub(super) fn main(&self) -> Option<usize> {
        let agents = self.moments.iter().filter(|(moment, _)| *moment == SpanEdge::Start);
        agents
            .map(|(_, index)| *index)
            .find(|index| self.kinds[*index] == SpanKind::Agent && self.owners[*index].is_none())
    }

    pub(super) fn session(&self) -> &'a str {
        self.spans.first().map_or("default", |span| span.trace.as_str())
    }

    /// Returns whether one of these is between a span and its agent.
    pub(super) fn inside(&self, index: usize, kinds: &[SpanKind]) -> bool {
        let above = std::iter::successors(self.parents[index], |parent| self.parents[*parent]);
        let until_agent = above.map(|parent| self.kinds[parent]).take_while(|kind| *kind != SpanKind::Agent);
        until_agent.take(64).any(|kind| kinds.contains(&kind))
    }

    /// Starts and ends by time. What is at the same time is in the order of a walk through the tree, so that whatever
    /// the clock says, an agent begins before its models answer, and those before their step ends.
    pub(super) fn moments(&self) -> &[(SpanEdge, usize)] {
        &self.moments
    }

    fn order(&mut self) {
        let walk = self.walk();
        let mut ends: Vec<i64> = self.spans.iter().map(|span| span.end).collect();
        for (moment, index) in &walk {
            if let (SpanEdge::End, Some(parent)) = (moment, self.parents[*index]) {
                ends[parent] = ends[parent].max(ends[*index]);
            }
        }
        let time = |(moment, index): &(SpanEdge, usize)| match moment {
            SpanEdge::Start => self.spans[*index].start,
            SpanEdge::End => ends[*index],
        };
        let mut moments = walk;
        moments.sort_by_key(time);
        self.moments = moments;
    }

    /// Every span's start before its children's and its end after theirs, siblings by start.
    fn walk(&mut self) -> Vec<(SpanEdge, usize)> {
        let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (index, parent) in self.parents.iter().enumerate() {
            children.entry(*parent).or_default().push(index);
        }
        for list in children.values_mut() {
            list.sort_by_key(|index| std::cmp::Reverse((self.spans[*index].start, *index)));
        }
        let mut walk = Vec::with_capacity(self.spans.len() * 2);
        let roots = children.remove(&None).unwrap_or_default();
        let mut stack: Vec<(SpanEdge, usize)> =
            roots.into_iter().map(|root| (SpanEdge::Start, root)).collect();
        while let Some((moment, index)) = stack.pop() {
            walk.push((moment, index));
            if moment == SpanEdge::Start {
                let agent = self.parents[index].filter(|parent| self.kinds[*parent] == SpanKind::Agent);
                self.owners[index] = agent.or_else(|| self.owners[self.parents[index]?]);
                stack.push((SpanEdge::End, index));
                let below = children.remove(&Some(index)).unwrap_or_default();
                stack.extend(below.into_iter().map(|child| (SpanEdge::Start, child)));
            }
        }
        walk
    }
}

/// The parent of each span; one whose ancestors go round in a circle has none.
fn parents(spans: &[Span]) -> Vec<Option<usize>> {
    let by_id: HashMap<&str, usize> =
        spans.iter().enumerate().map(|(index, span)| (span.id.as_str(), index)).collect();
    let of = |span: &Span| by_id.get(span.parent.as_str()).copied().filter(|_| !span.parent.is_empty());
    let mut parents: Vec<Option<usize>> = spans.iter().map(of).collect();
    // 0: not looked at; 1: on the way up from here; 2: leads to a root.
    let mut state = vec![0u8; spans.len()];
    for start in 0..spans.len() {
        let mut path = Vec::new();
        let mut at = start;
        loop {
            match state[at] {
                0 => {
                    state[at] = 1;
                    path.push(at);
                    match parents[at] {
                        Some(parent) => at = parent,
                        None => break,
                    }
                }
                1 => {
                    parents[at] = None;
                    break;
                }
                _ => break,
            }
        }
        path.into_iter().for_each(|index| state[index] = 2);
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: &str, parent: &str, start: i64, end: i64) -> Span {
        Span { id: id.to_owned(), parent: parent.to_owned(), start, end, ..Span::default() }
    }

    fn order(spans: &[Span]) -> String {
        let tree = Tree::new(spans);
        let name = |(moment, index): &(SpanEdge, usize)| match moment {
            SpanEdge::Start => spans[*index].id.clone(),
            SpanEdge::End => format!("/{}", spans[*index].id),
        };
        tree.moments().iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn children_are_inside_their_parents() {
        let spans = [span("b", "a", 1, 1), span("c", "a", 1, 1), span("a", "", 1, 1)];
        assert_eq!(order(&spans), "a b /b c /c /a");
        assert_eq!(order(&[span("a", "", 1, 2), span("b", "a", 2, 9)]), "a b /b /a");
    }

    #[test]
    fn time_comes_first() {
        let spans = [span("a", "", 5, 6), span("b", "", 1, 7), span("c", "lost", 2, 3)];
        assert_eq!(order(&spans), "b c /c a /a /b");
    }

    #[test]
    fn circles_are_cut() {
        assert_eq!(
            order(&[span("a", "b", 1, 1), span("b", "a", 2, 2), span("c", "c", 3, 3)]).split(' ').count(),
            6
        );
    }
}
