use deloop_types::{Body, Call, Millis, Origin, Step, ToolResult, Turn, UserText};

use super::Seen;

/// Why bytes are not an event; the message names what to mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookError(pub String);

impl std::fmt::Display for HookError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HookError {}

/// At which point of its work an agent calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum HookKind {
    /// A call is about to be made.
    PreCall,
    /// A person would be asked about a call.
    Permission,
    /// A call came back.
    PostCall,
    /// A call failed.
    Failure,
    /// All calls of a turn came back.
    Batch,
    /// Something is said to the agent.
    Prompt,
    /// The agent has finished its turn.
    Stop,
    /// The context is about to be cut or summarised.
    Compact,
    /// A session begins or goes on.
    SessionStart,
    /// A session is over.
    SessionEnd,
    /// Anything else: nothing is done about it.
    #[default]
    Other,
}

/// One event of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookEvent {
    /// Its name, as the agent writes it.
    pub name: String,
    /// What it is.
    pub kind: HookKind,
    /// The session.
    pub session: String,
    /// The subagent it happened in, if it was one.
    pub subagent: Option<String>,
    /// The calls it is about.
    pub calls: Vec<HookCall>,
    /// What is said to the agent.
    pub prompt: Option<HookPrompt>,
    /// What the agent works on since a person last wrote, where the agent gives that a name.
    pub turn: Option<String>,
    /// What the agent said last.
    pub said: Option<String>,
    /// The file the session is written to.
    pub transcript: Option<String>,
    /// The folder the agent works in.
    pub cwd: Option<String>,
    /// Whether a person is there to be asked, where the agent tells.
    pub attended: Option<bool>,
    /// When, where the agent tells.
    pub ts: Option<Millis>,
    /// A call was let through although the run was to end, and the event that would have ended it did not come: the
    /// reply shall try another way.
    pub again: bool,
}

/// A call, and what came back where the event tells.
#[derive(Debug, Clone, PartialEq)]
pub struct HookCall {
    /// The call.
    pub call: Call,
    /// What came back; its own `id` is not used.
    pub result: Option<ToolResult>,
}

/// What is said to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPrompt {
    /// The text.
    pub text: String,
    /// Who says it.
    pub by: PromptAuthor,
}

/// Who says something to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptAuthor {
    /// A person.
    Human,
    /// The program itself.
    Harness,
    /// A person if it begins a turn, else the program itself.
    HumanWhenNew,
}

impl HookEvent {
    /// What happened, as Steps: each call and each result once, however many events tell of it.
    pub fn steps(&self, seen: &mut Seen) -> Vec<Step> {
        let mut bodies = Vec::new();
        match self.kind {
            HookKind::PreCall | HookKind::PostCall | HookKind::Failure | HookKind::Batch => {
                let ids: Vec<(String, bool)> =
                    self.calls.iter().map(|c| seen.enter(&c.call, self.kind == HookKind::PreCall)).collect();
                let fresh = self.calls.iter().zip(&ids).filter(|(_, (_, is_new))| *is_new);
                let calls: Vec<Call> = fresh
                    .map(|(c, (id, _))| {
                        let mut made = c.call.clone();
                        made.id = Some(id.clone());
                        made
                    })
                    .collect();
                if !calls.is_empty() {
                    bodies.push(Body::Turn(Turn::new("", calls)));
                }
                for (call, (id, _)) in self.calls.iter().zip(ids) {
                    if let Some(result) = call.result.as_ref().filter(|_| seen.close(&id)) {
                        bodies.push(Body::Result({
                            let mut made = result.clone();
                            made.id = Some(id);
                            made
                        }));
                    }
                }
            }
            HookKind::Prompt => {
                if let Some(prompt) = &self.prompt {
                    let origin = if self.is_human(seen) { Origin::Human } else { Origin::Harness };
                    bodies.push(Body::User(UserText::new(prompt.text.clone(), origin)));
                }
                seen.begin_turn(self.turn.as_deref());
            }
            HookKind::Stop => {
                if let Some(said) = self.said.as_ref().filter(|s| !s.trim().is_empty()) {
                    bodies.push(Body::Turn(Turn::new(said.clone(), Vec::new())));
                }
            }
            HookKind::Compact => bodies.push(Body::Compact),
            // An agent that ends may be resumed: what is known of the session stays until it is too old.
            HookKind::SessionEnd | HookKind::Permission | HookKind::SessionStart | HookKind::Other => {}
        }
        let step = |body| {
            let mut made = Step::new(self.session.as_str(), body);
            made.agent = self.subagent.clone();
            made.ts = self.ts;
            made
        };
        bodies.into_iter().map(step).collect()
    }

    /// Whether a person speaks to the agent here.
    #[must_use]
    pub fn is_human(&self, seen: &Seen) -> bool {
        self.prompt.as_ref().is_some_and(|prompt| match prompt.by {
            PromptAuthor::Human => true,
            PromptAuthor::Harness => false,
            PromptAuthor::HumanWhenNew => seen.is_new_turn(self.turn.as_deref()),
        })
    }

    /// That these calls were refused, as Steps.
    pub fn refused(&self, seen: &mut Seen) -> Vec<Step> {
        let called_off = |id: String| {
            // Not a refusal by somebody else, which would be evidence.
            let outcome = Some(deloop_types::Outcome::Cancelled);
            let result = {
                let mut made = ToolResult::default();
                made.id = Some(id);
                made.outcome = outcome;
                made
            };
            {
                let mut made = Step::new(self.session.as_str(), Body::Result(result));
                made.agent = self.subagent.clone();
                made.ts = self.ts;
                made
            }
        };
        let ids: Vec<String> = self.calls.iter().map(|c| seen.latest(&c.call)).collect();
        ids.into_iter().filter(|id| seen.close(id)).map(called_off).collect()
    }
}
