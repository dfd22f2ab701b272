//! Checks the server that decides in place of this machine.

use deloop_formats::hooks::installables;

use super::Note;
use crate::config::Config;
use crate::exit::Failure;
use crate::install::args::Scope;
use crate::install::here;
use crate::server_link::{ServerSettings, greet};

/// Asks each server that the user's own settings name whether it takes steps.
pub(super) fn check(config: &Config) -> Vec<Note> {
    let mut named: Vec<Option<String>> = vec![None];
    // A project's settings could name any server, so only the user's own count.
    for agent in installables() {
        let text = here::read_settings(&agent, Scope::User).and_then(|(_, text)| text.ok());
        let line = text.and_then(|text| agent.installed(&text).ok().flatten());
        named.extend(line.and_then(|found| found.line.server).map(Some));
    }
    let mut seen: Vec<String> = Vec::new();
    let mut notes = Vec::new();
    for url in named {
        match ServerSettings::of(&config.server, url.as_deref()) {
            Ok(None) => {}
            Ok(Some(settings)) if seen.contains(&settings.url) => {}
            Ok(Some(settings)) => {
                notes.extend(ask(&settings));
                seen.push(settings.url);
            }
            Err(failure) => notes.push(wrong(failure)),
        }
    }
    notes
}

fn ask(settings: &ServerSettings) -> Vec<Note> {
    let url = deloop_detect::clean(&settings.url, 200);
    let greeting = match greet(settings) {
        Ok(greeting) => greeting,
        Err(Failure::Message(why)) => return vec![wrong(Failure::new(format!("{url}: {why}")))],
        Err(failure) => return vec![wrong(failure)],
    };
    let version = greeting.version.unwrap_or_else(|| "of an unknown version".to_owned());
    let mode = greeting.mode.map_or("unknown", deloop_types::Mode::as_str);
    let text = format!("server: {url} decides (deloop {version}, mode {mode})");
    let server = if version == env!("CARGO_PKG_VERSION") { Note::Well(text) } else { Note::Know(text) };
    let key = greeting.key.map(|key| Note::Know(format!("server: {}", key.describe())));
    std::iter::once(server).chain(key).collect()
}

fn wrong(failure: Failure) -> Note {
    let why = match failure {
        Failure::Message(why) => why,
        Failure::ClosedPipe => "can't be asked".to_owned(),
    };
    Note::Wrong(format!("server: {why}; until it works, deloop decides on this machine"))
}
