use deloop_types::{Body, Call, Millis, Origin, Step, ToolResult, Turn, UserText};

use super::Seen;

/// Why bytes aren't an event. The message names the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookError(pub String);

impl std::fmt::Display for HookError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HookError {}

/// Stands for the request of a hook that kept an agent from ending its turn. The event doesn't contain its words.
const CONTINUED: &str = "(A hook asked the agent to continue.)";

/// The point in its work at which an agent calls deloop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum HookKind {
    /// A call is about to be made.
    PreCall,
    /// A person is about to be asked about a call.
    Permission,
    /// A call has a result.
    PostCall,
    /// A call failed.
    Failure,
    /// All calls of a turn have results.
    Batch,
    /// A message is sent to the agent.
    Prompt,
    /// The agent has finished its turn.
    Stop,
    /// The context is about to be cut or summarized.
    Compact,
    /// A session starts or resumes.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// Anything else, which is ignored.
    #[default]
    Other,
}

/// One event of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookEvent {
    /// The event's name, as the agent writes it.
    pub name: String,
    /// The kind of event.
    pub kind: HookKind,
    /// The session.
    pub session: String,
    /// The subagent, if any.
    pub subagent: Option<String>,
    /// The calls it is about.
    pub calls: Vec<HookCall>,
    /// The message to the agent.
    pub prompt: Option<HookPrompt>,
    /// The id of the work since a person last wrote, if the agent gives it one.
    pub turn: Option<String>,
    /// The agent's last message.
    pub said: Option<String>,
    /// The transcript.
    pub transcript: Option<String>,
    /// The agent's working folder.
    pub cwd: Option<String>,
    /// Whether a person is there to answer questions, if the agent reports it.
    pub attended: Option<bool>,
    /// The time, if the agent reports it.
    pub ts: Option<Millis>,
    /// Set when the agent ends its turn after a hook kept it from doing so before: a program asked it to continue.
    pub continued: bool,
    /// Set when a call was allowed although the run was to be stopped, and the event that would have stopped it didn't
    /// come. The reply then uses another way.
    pub again: bool,
}

/// A call, and its result if the event has one.
#[derive(Debug, Clone, PartialEq)]
pub struct HookCall {
    /// The call.
    pub call: Call,
    /// The result; its own `id` isn't used.
    pub result: Option<ToolResult>,
    /// Its id in the transcript: the one that the model gave it, if the hook has another. A model may use an id twice.
    pub in_transcript: Option<String>,
}

impl HookCall {
    /// Returns the id that the transcript has for it.
    #[must_use]
    pub fn transcript_id(&self) -> Option<&str> {
        self.in_transcript.as_deref().or(self.call.id.as_deref())
    }
}

/// A message to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPrompt {
    /// The text.
    pub text: String,
    /// The sender.
    pub by: PromptAuthor,
}

/// The sender of a message to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptAuthor {
    /// A person.
    Human,
    /// The program itself.
    Harness,
    /// The program itself, which only reports something.
    Notice,
    /// A person if it starts a turn, else the program itself.
    HumanWhenNew,
    /// A person, or the program itself if a hook kept the agent going with the same words before.
    HumanUntilContinued,
}

impl HookEvent {
    /// Returns what happened as Steps: each call and each result once, however many events report it.
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
                    let origin = self.origin(prompt, seen);
                    seen.prompted(&prompt.text);
                    bodies.push(Body::User(UserText::new(prompt.text.clone(), origin)));
                    if prompt.by == PromptAuthor::HumanUntilContinued {
                        seen.begin_prompt(&prompt.text);
                    }
                }
                seen.begin_turn(self.turn.as_deref());
            }
            HookKind::Stop => {
                if seen.end_prompt(self.continued) {
                    bodies.push(Body::User(UserText::new(CONTINUED, Origin::Harness)));
                }
                if let Some(said) = self.said.as_ref().filter(|s| !s.trim().is_empty()) {
                    bodies.push(Body::Turn(Turn::new(said.clone(), Vec::new())));
                }
            }
            HookKind::Compact => bodies.push(Body::Compact),
            // An agent that ends may be resumed, so the session's state is kept until it is too old.
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

    /// Returns whether a person writes to the agent in this event.
    #[must_use]
    pub fn is_human(&self, seen: &Seen) -> bool {
        self.prompt.as_ref().is_some_and(|prompt| self.origin(prompt, seen) == Origin::Human)
    }

    /// Returns the sender of the message of this event. What the agent had put on a timer comes from the timer.
    fn origin(&self, prompt: &HookPrompt, seen: &Seen) -> Origin {
        let by_program = match prompt.by {
            PromptAuthor::Notice => return Origin::Notice,
            PromptAuthor::Human => false,
            PromptAuthor::Harness => true,
            PromptAuthor::HumanWhenNew => !seen.is_new_turn(self.turn.as_deref()),
            PromptAuthor::HumanUntilContinued => seen.has_continued(&prompt.text),
        };
        match by_program {
            true => Origin::Harness,
            false if seen.is_scheduled(&prompt.text) => Origin::Schedule,
            false => Origin::Human,
        }
    }

    /// Marks the message of this event as a notice if its text is one.
    pub(crate) fn mark_notice(&mut self, is_notice: impl Fn(&str) -> bool) {
        if let Some(prompt) = self.prompt.as_mut().filter(|prompt| is_notice(&prompt.text)) {
            prompt.by = PromptAuthor::Notice;
        }
    }

    /// Returns the Steps that report these calls as refused.
    pub fn refused(&self, seen: &mut Seen) -> Vec<Step> {
        let called_off = |id: String| {
            // Not a refusal by someone else, which would be evidence.
            let outcome = Some(deloop_types::Outcome::Cancelled);
            let mut result = ToolResult::default();
            result.id = Some(id);
            result.outcome = outcome;
            let mut made = Step::new(self.session.as_str(), Body::Result(result));
            made.agent = self.subagent.clone();
            made.ts = self.ts;
            made
        };
        let ids: Vec<String> = self.calls.iter().map(|c| seen.latest(&c.call)).collect();
        ids.into_iter().filter(|id| seen.close(id)).map(called_off).collect()
    }
}
