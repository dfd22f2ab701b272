use deloop_detect::clean;
use serde::Deserialize;

use super::connection::{ANSWER, ServerConnection};

/// Maximum length of a name that the server reports, in characters.
const NAME: usize = 64;

/// What a server says about the key that it is asked with.
#[derive(Deserialize)]
pub(crate) struct KeyReport {
    name: String,
    project: Option<String>,
    group: Option<String>,
    scopes: Vec<String>,
    lifts_stops: bool,
}

impl KeyReport {
    /// Asks a server. `None` if it doesn't say: it may be of an earlier release.
    pub(super) fn ask(connection: &ServerConnection) -> Option<Self> {
        let mut response = connection.get("/v1/key").call().ok()?;
        let answer = response.body_mut().with_config().limit(ANSWER).read_to_vec().ok()?;
        serde_json::from_slice(&answer).ok()
    }

    /// Says what the key allows, in one line.
    pub(crate) fn describe(&self) -> String {
        let lifts = if self.lifts_stops {
            "what a person writes here lifts a stop"
        } else {
            "nothing sent from here lifts a stop; on a person's machine, use a key with `ingest,attend`"
        };
        if self.group.is_none() {
            return "the server has no keys, so everything is allowed".to_owned();
        }
        let project = match &self.project {
            Some(project) => format!("project {}", clean(project, NAME)),
            None => "all projects".to_owned(),
        };
        let group = self.group.as_deref().filter(|group| *group != self.name);
        let group = group.map_or(String::new(), |group| format!(", group {}", clean(group, NAME)));
        let scopes: Vec<String> = self.scopes.iter().map(|scope| clean(scope, NAME)).collect();
        format!("key {}: {} ({project}{group}); {lifts}", clean(&self.name, NAME), scopes.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_the_scopes_and_whether_people_are_heard() {
        let report = |text: &str| serde_json::from_str::<KeyReport>(text).unwrap().describe();
        let ci = r#"{"name":"ci","project":"web","group":"ci","scopes":["ingest"],"lifts_stops":false}"#;
        assert_eq!(
            report(ci),
            "key ci: ingest (project web); nothing sent from here lifts a stop; on a person's machine, use a key with \
             `ingest,attend`"
        );
        let own = r#"{"name":"a\u001b[2J","project":null,"group":"team","scopes":["ingest","attend"],"lifts_stops":true}"#;
        let text = report(own);
        assert!(
            text.contains("ingest, attend (all projects, group team)") && !text.contains('\u{1b}'),
            "{text}"
        );
        let local = r#"{"name":"local","project":null,"group":null,"scopes":["admin"],"lifts_stops":true}"#;
        assert!(report(local).contains("has no keys"));
    }
}
