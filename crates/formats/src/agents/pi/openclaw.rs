//! Who a message is from in OpenClaw, which keeps its sessions in pi's format and sends its agent messages of its own:
//! heartbeats, cron jobs, and news of commands and subagents.

use deloop_types::Origin;

use crate::json::tolerant::Shaped;

use super::record::OpenClawProvenance;

/// The lines that stand for a wake-up in a session, and what woke the agent. A hint may follow on the next line.
const WAKE_UPS: [(&str, Origin); 4] = [
    ("[OpenClaw heartbeat poll]", Origin::Schedule),
    ("[OpenClaw cron wake]", Origin::Schedule),
    ("[OpenClaw exec completion]", Origin::Notice),
    ("[OpenClaw session event]", Origin::Notice),
];

/// How the prompts begin that earlier versions kept in full, and what else is in them.
const PROMPTS: [(&str, &str, Origin); 9] = [
    ("Read HEARTBEAT.md", "reply HEARTBEAT_OK", Origin::Schedule),
    ("Follow the heartbeat monitor scratch context", "reply NO_REPLY", Origin::Schedule),
    ("Run the following periodic tasks (only those due", "After completing all due tasks", Origin::Schedule),
    ("A scheduled reminder has been triggered. The reminder ", "", Origin::Schedule),
    ("A scheduled cron event was triggered, but ", "", Origin::Schedule),
    ("An async command you ran earlier has completed. The ", "", Origin::Notice),
    ("An async command completion event was triggered, but ", "", Origin::Notice),
    ("[System Message] [sessionId: ", "] A ", Origin::Notice),
    ("[Queued announce messages while agent was busy]", "Queued #1", Origin::Notice),
];

/// How lines begin that report an event, up to its time in brackets.
const EVENT: [&str; 2] = ["System: [", "System (untrusted): ["];

/// Returns who a message is from: as its `provenance` declares, which newer versions have, or else by its form.
pub(super) fn origin(provenance: Shaped<'_, OpenClawProvenance<'_>>, text: &str) -> Origin {
    let provenance = provenance.object().unwrap_or_default();
    match (provenance.kind.get(), provenance.source_tool.as_str()) {
        (Some("external_user"), _) => Origin::Human,
        (Some("internal_system"), "heartbeat" | "cron") => Origin::Schedule,
        (Some("internal_system"), "exec" | "exec-event") => Origin::Notice,
        (Some("inter_session"), "subagent_announce") => Origin::Notice,
        (declared, _) => {
            let unknown = if declared.is_some() { Origin::Harness } else { Origin::Human };
            by_form(text).unwrap_or(unknown)
        }
    }
}

/// Returns what sent a message; `None` if it may be a person.
fn by_form(text: &str) -> Option<Origin> {
    let (events, rest) = split_events(text.trim());
    let rest = without_time(rest);
    if rest.is_empty() {
        return events.then_some(Origin::Notice);
    }
    let is_line =
        |line: &str| rest.strip_prefix(line).is_some_and(|more| more.is_empty() || more.starts_with('\n'));
    let wake_up = WAKE_UPS.iter().find(|(line, _)| is_line(line)).map(|(_, origin)| *origin);
    let prompt = PROMPTS.iter().find(|(start, inside, _)| rest.starts_with(start) && rest.contains(inside));
    let prompt = prompt.map(|(_, _, origin)| *origin);
    wake_up.or(prompt).or_else(|| is_cron_job(rest).then_some(Origin::Schedule))
}

/// Splits off the lines with which events begin a message, and returns whether there are any.
fn split_events(text: &str) -> (bool, &str) {
    let mut rest = text;
    while EVENT.iter().any(|start| rest.starts_with(start)) {
        rest = rest.split_once('\n').map_or("", |(_, more)| more);
    }
    (rest.len() < text.len(), rest.trim_start())
}

/// Returns the text behind the time that OpenClaw may put in front of a message: `[Mon 2026-03-02 22:29 EST] `.
fn without_time(text: &str) -> &str {
    let time = text.strip_prefix('[').and_then(|text| text.split_once("] "));
    let is_time = |time: &str| {
        let mut words = time.split(' ');
        let (day, date) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        day.len() == 3 && date.len() == 10 && date.bytes().all(|b| b.is_ascii_digit() || b == b'-')
    };
    time.filter(|(time, _)| is_time(time)).map_or(text, |(_, rest)| rest.trim_start())
}

/// Returns whether a message is a cron job's: `[cron:ID NAME] …`, where the id is a UUID.
fn is_cron_job(text: &str) -> bool {
    let id = text.strip_prefix("[cron:").and_then(|rest| rest.split([' ', ']']).next());
    id.is_some_and(|id| {
        id.len() == 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') && text.contains(']')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEARTBEAT: &str = "Read HEARTBEAT.md if it exists (workspace context). Follow it strictly. Do not infer or \
                             repeat old tasks from prior chats. If nothing needs attention, reply HEARTBEAT_OK.";

    fn said(text: &str) -> Origin {
        origin(Shaped::Nothing, text)
    }

    fn declared(kind: &'static str, tool: &'static str) -> Origin {
        let text = |text: &'static str| std::borrow::Cow::Borrowed(text).into();
        let provenance = OpenClawProvenance { kind: text(kind), source_tool: text(tool) };
        origin(Shaped::Object(provenance), "Go on.")
    }

    #[test]
    fn what_is_declared_counts() {
        assert_eq!(declared("internal_system", "heartbeat"), Origin::Schedule);
        assert_eq!(declared("internal_system", "cron"), Origin::Schedule);
        assert_eq!(declared("internal_system", "exec"), Origin::Notice);
        assert_eq!(declared("inter_session", "subagent_announce"), Origin::Notice);
        assert_eq!(declared("inter_session", "sessions_send"), Origin::Harness);
        assert_eq!(declared("internal_system", "main_session_restart_recovery"), Origin::Harness);
        assert_eq!(declared("external_user", ""), Origin::Human);
    }

    #[test]
    fn timers_are_known_by_their_form() {
        for text in [
            "[OpenClaw heartbeat poll]",
            "[OpenClaw cron wake]",
            HEARTBEAT,
            "[cron:720b01aa-03d1-4888-a2d4-0f0a9e0d7b6c Nightly] Sort the notes.",
            "A scheduled reminder has been triggered. The reminder content is:\n\nWater the ferns.",
        ] {
            assert_eq!(said(text), Origin::Schedule, "{text}");
            assert_eq!(said(&format!("[Mon 2026-03-02 22:29 EST] {text}")), Origin::Schedule, "{text}");
        }
        let after_events =
            format!("System: [2026-03-31 12:13:00 EDT] Exec completed (a-b, code 0) :: ok\n\n{HEARTBEAT}");
        assert_eq!(said(&format!("{after_events}\nCurrent time: noon")), Origin::Schedule);
    }

    #[test]
    fn deliveries_are_news() {
        for text in [
            "[OpenClaw exec completion]\nCompletion turns can be switched off.",
            "System: [2026-04-10 08:02:01 UTC] Exec failed (a-b, signal SIGTERM)\nSystem (untrusted): [2026-04-10 08:03:00 UTC] Gateway connected.",
            "System (untrusted): [2026-04-22 10:06:24 GMT+8] Exec completed (a-b, code 0)\n\nAn async command you ran earlier has completed. The result is shown above.",
            "[Sat 2026-02-28 14:11 GMT+8] [System Message] [sessionId: 63] A subagent task \"look\" just completed successfully.\n\nResult:\nDone.",
            "[Mon 2026-03-02 01:12 GMT+8] [Queued announce messages while agent was busy]\n\n---\nQueued #1\n[System Message] …",
        ] {
            assert_eq!(said(text), Origin::Notice, "{text}");
        }
    }

    #[test]
    fn a_person_may_write_about_them() {
        for text in [
            "What does [OpenClaw heartbeat poll] mean?",
            "[OpenClaw heartbeat poll] came twice. Why?",
            "Read HEARTBEAT.md and tell me what is in it.",
            "Why did you reply HEARTBEAT_OK?",
            "[cron: fix it] The job fails.",
            "[urgent] The deploy failed.",
            "System: it hangs.",
            "System: [2026-02-28 12:00:00 UTC] Reaction added: 👍\n\nWhat is the weather today?",
            "[Wed 2026-02-11 11:42 AST] Send the review to the team.",
            "",
        ] {
            assert_eq!(said(text), Origin::Human, "{text}");
        }
    }
}
