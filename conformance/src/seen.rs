//! Which calls a worker made, so that a call that is repeated under its id counts once.

use crate::canonical::signature;
use crate::step::Call;

/// The calls of one worker, in order.
#[derive(Default)]
pub(crate) struct SeenCalls {
    calls: Vec<Seen>,
    turn: u64,
    turn_id: Option<String>,
    /// An id came back with another call: ids name nothing.
    ids_repeat: bool,
}

struct Seen {
    id: Option<String>,
    signature: String,
    turn: u64,
    answered: bool,
}

impl SeenCalls {
    /// Whether this turn is the current one.
    pub fn continues(&self, id: Option<&str>) -> bool {
        id.is_some() && id == self.turn_id.as_deref()
    }

    /// A turn that has something new.
    pub fn begin(&mut self, id: Option<&str>) {
        if !self.continues(id) {
            self.turn += 1;
            self.turn_id = id.map(str::to_owned);
        }
    }

    /// The latest turn with calls, if all of them were answered.
    pub fn turn_over(&self) -> Option<u64> {
        let turn = self.calls.last()?.turn;
        self.calls.iter().filter(|c| c.turn == turn).all(|c| c.answered).then_some(turn)
    }

    /// Whether the call is a new one; remembers it then. `first`: its turn begins with this step; `over`: the turn
    /// that was over before it, whose ids may have been given out anew.
    pub fn enter(&mut self, call: &Call, first: bool, over: Option<u64>) -> bool {
        let signature = signature(call);
        let earlier = match &call.id {
            Some(id) if !self.ids_repeat => self.calls.iter().rposition(|c| c.id.as_ref() == Some(id)),
            _ => None,
        };
        if let Some(at) = earlier {
            self.ids_repeat = self.calls[at].signature != signature;
            if !self.ids_repeat && Some(self.calls[at].turn) != over {
                return false;
            }
        }
        let turn = self.turn + u64::from(first);
        self.calls.push(Seen { id: call.id.clone(), signature, turn, answered: false });
        true
    }

    /// The latest call with this id; without one, the oldest open one of the latest turn that has any.
    pub fn answer(&mut self, id: Option<&str>) {
        let open = |c: &&mut Seen| !c.answered;
        let found = match id {
            Some(id) => self.calls.iter_mut().rev().find(|c| c.id.as_deref() == Some(id)),
            None => {
                let turn = self.calls.iter().rev().find(|c| !c.answered).map(|c| c.turn);
                self.calls.iter_mut().filter(open).find(|c| Some(c.turn) == turn)
            }
        };
        if let Some(call) = found {
            call.answered = true;
        }
    }
}
