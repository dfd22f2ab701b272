//! Hooks in a JSON file: a list of handlers for each event.

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use jsonc_parser::{ParseOptions, errors::ParseError};

use super::line::{HookLine, Installed, quoted};
use super::{Installable, WiringError};

/// The form of an agent's handlers.
#[derive(Debug)]
pub struct JsonHooks {
    /// The events at which deloop is called.
    pub events: &'static [&'static str],
    /// The position of a handler in the list of its event.
    pub(crate) shape: HandlerShape,
    /// The key of the command.
    pub(crate) command: &'static str,
    /// The key of the timeout, and the timeout in the agent's unit.
    pub(crate) timeout: (&'static str, u32),
    /// Whether a handler has the type `command`.
    pub(crate) typed: bool,
    /// Whether a handler has a `name`.
    pub(crate) named: bool,
    /// The `version` that the file must have, if any.
    pub(crate) version: Option<u32>,
    /// What wraps the command so that the agent continues when deloop fails.
    pub(crate) fail_open: FailOpen,
}

/// The position of a handler in the list of its event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HandlerShape {
    /// `{"matcher": …, "hooks": [HANDLER]}`
    Group { matcher: Option<&'static str> },
    /// `HANDLER`
    Flat,
}

/// What wraps the command.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FailOpen {
    /// Nothing: the agent continues by itself.
    ByItself,
    /// Ignores a missing program, and makes deloop the process itself: at a timeout the agent kills only the shell and
    /// then waits for the shell's child.
    Exec,
    /// Ignores any failure.
    OrZero,
}

/// One of deloop's handlers and its position.
struct Ours {
    found: Installed,
    handler: CstObject,
    /// The group that contains it, if there are groups.
    group: Option<CstObject>,
    list: CstArray,
}

impl JsonHooks {
    pub(crate) fn install(
        &self,
        agent: &Installable,
        text: Option<&str>,
        line: &HookLine,
    ) -> Result<String, WiringError> {
        let text = text.unwrap_or_default();
        let is_empty = without_mark(text).trim().is_empty();
        let root = parse(if is_empty { "{}\n" } else { without_mark(text) })?;
        let object = object(&root)?;
        let command = self.command_line(agent, line);
        if let Some(version) = self.version.filter(|_| object.get("version").is_none()) {
            object.insert(0, "version", CstInputValue::Number(version.to_string()));
        }
        let hooks = match object.get("hooks") {
            None => object.object_value_or_set("hooks"),
            Some(_) => object.object_value("hooks").ok_or_else(|| shape("hooks", "an object"))?,
        };
        let mut missing: Vec<&str> = self.events.to_vec();
        for event in events(&hooks)? {
            for ours in self.ours(agent, &event.1) {
                let at = missing.iter().position(|wanted| *wanted == event.0);
                match at {
                    Some(at) => {
                        missing.remove(at);
                        self.set_command(&ours.handler, &command);
                    }
                    None => take_out(ours),
                }
            }
            drop_if_empty(&hooks, &event.0, &missing);
        }
        for event in missing {
            let list = match hooks.get(event) {
                None => hooks.array_value_or_set(event),
                Some(_) => hooks.array_value(event).ok_or_else(|| shape(event, "a list"))?,
            };
            list.append(self.entry(&command));
        }
        Ok(same_mark(text, root.to_string()))
    }

    pub(crate) fn uninstall(&self, agent: &Installable, text: &str) -> Result<Option<String>, WiringError> {
        if without_mark(text).trim().is_empty() {
            return Ok(Some(text.to_owned()));
        }
        let root = parse(without_mark(text))?;
        let object = object(&root)?;
        let Some(hooks) = object.object_value("hooks") else { return Ok(Some(text.to_owned())) };
        let mut any = false;
        for (name, list) in events(&hooks)? {
            let ours = self.ours(agent, &list);
            any |= !ours.is_empty();
            let had = !ours.is_empty();
            ours.into_iter().for_each(take_out);
            if had {
                drop_if_empty(&hooks, &name, &[]);
            }
        }
        if !any {
            return Ok(Some(text.to_owned()));
        }
        if hooks.properties().is_empty()
            && let Some(property) = object.get("hooks")
        {
            property.remove();
        }
        let left = object.properties();
        let only_version = self.version.is_some()
            && left.iter().all(|p| p.decoded_name().is_some_and(|name| name == "version"));
        Ok((!only_version).then(|| same_mark(text, root.to_string())))
    }

    pub(crate) fn installed(
        &self,
        agent: &Installable,
        text: &str,
    ) -> Result<Option<Installed>, WiringError> {
        if without_mark(text).trim().is_empty() {
            return Ok(None);
        }
        let root = parse(without_mark(text))?;
        let Some(hooks) = object(&root)?.object_value("hooks") else { return Ok(None) };
        let found = events(&hooks)?.into_iter().find_map(|(_, list)| self.ours(agent, &list).pop());
        Ok(found.map(|ours| ours.found))
    }

    /// Returns the command line that the agent runs.
    fn command_line(&self, agent: &Installable, line: &HookLine) -> String {
        let command = line.command(agent.name);
        match self.fail_open {
            FailOpen::ByItself => command,
            FailOpen::Exec => {
                let program = quoted(&line.program);
                format!("command -v {program} >/dev/null || exit 0; exec {command} 2>/dev/null")
            }
            FailOpen::OrZero => format!("{command} 2>/dev/null || exit 0"),
        }
    }

    /// Returns the entry to add to the list of an event.
    fn entry(&self, command: &str) -> CstInputValue {
        let text = |text: &str| CstInputValue::String(text.to_owned());
        let mut handler = vec![(self.command.to_owned(), text(command))];
        if self.typed {
            handler.insert(0, ("type".to_owned(), text("command")));
        }
        if self.named {
            handler.push(("name".to_owned(), text("deloop")));
        }
        let (key, timeout) = self.timeout;
        handler.push((key.to_owned(), CstInputValue::Number(timeout.to_string())));
        let handler = CstInputValue::Object(handler);
        match self.shape {
            HandlerShape::Flat => handler,
            HandlerShape::Group { matcher } => {
                let matcher = matcher.map(|m| ("matcher".to_owned(), text(m)));
                let hooks = ("hooks".to_owned(), CstInputValue::Array(vec![handler]));
                CstInputValue::Object(matcher.into_iter().chain([hooks]).collect())
            }
        }
    }

    /// Returns deloop's handlers in the list of an event.
    fn ours(&self, agent: &Installable, list: &CstArray) -> Vec<Ours> {
        let ours = |node: &CstNode, list: &CstArray, group: Option<&CstObject>| {
            let handler = node.as_object()?;
            let command = handler.get(self.command)?.value()?.as_string_lit()?.decoded_value().ok()?;
            let line = HookLine::parse(&command, agent)?;
            Some(Ours {
                found: Installed { line, command },
                handler,
                group: group.cloned(),
                list: list.clone(),
            })
        };
        let mut found = Vec::new();
        for element in list.elements() {
            match self.shape {
                HandlerShape::Flat => found.extend(ours(&element, list, None)),
                HandlerShape::Group { .. } => {
                    let Some(group) = element.as_object() else { continue };
                    let Some(inner) = group.array_value("hooks") else { continue };
                    found.extend(inner.elements().iter().filter_map(|node| ours(node, &inner, Some(&group))));
                }
            }
        }
        found
    }

    fn set_command(&self, handler: &CstObject, command: &str) {
        let Some(property) = handler.get(self.command) else { return };
        let now = property.value().and_then(|v| v.as_string_lit()).and_then(|s| s.decoded_value().ok());
        if now.as_deref() != Some(command) {
            property.set_value(CstInputValue::String(command.to_owned()));
        }
    }
}

/// Removes a handler, and its group if that becomes empty.
fn take_out(ours: Ours) {
    let Ours { handler, group, list, .. } = ours;
    handler.remove();
    if let Some(group) = group.filter(|_| list.elements().is_empty()) {
        group.remove();
    }
}

/// Removes the list of an event if it is empty, unless it is about to be filled.
fn drop_if_empty(hooks: &CstObject, event: &str, wanted: &[&str]) {
    if wanted.contains(&event) {
        return;
    }
    if let Some(property) =
        hooks.get(event).filter(|p| p.array_value().is_some_and(|a| a.elements().is_empty()))
    {
        property.remove();
    }
}

/// Returns the events that have a list.
fn events(hooks: &CstObject) -> Result<Vec<(String, CstArray)>, WiringError> {
    let of = |property: jsonc_parser::cst::CstObjectProp| {
        Some((property.decoded_name()?, property.array_value()?))
    };
    Ok(hooks.properties().into_iter().filter_map(of).collect())
}

fn object(root: &CstRootNode) -> Result<CstObject, WiringError> {
    root.object_value()
        .ok_or_else(|| WiringError("it contains no JSON object `{…}`; fix it, then try again".to_owned()))
}

fn shape(key: &str, wanted: &str) -> WiringError {
    WiringError(format!("`{key}` is not {wanted}, which hooks require; fix it, then try again"))
}

/// Parses JSON. Allows comments and trailing commas, as some agents do, and nothing else that isn't JSON.
fn parse(text: &str) -> Result<CstRootNode, WiringError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let told = |error: ParseError| {
        WiringError(format!(
            "line {}, column {}: {}; fix it, then try again",
            error.line_display(),
            error.column_display(),
            error.kind()
        ))
    };
    CstRootNode::parse(text, &options).map_err(told)
}

/// The byte order mark that some editors on Windows write.
const MARK: char = '\u{feff}';

fn without_mark(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

fn same_mark(before: &str, after: String) -> String {
    if before.starts_with(MARK) { format!("{MARK}{after}") } else { after }
}
