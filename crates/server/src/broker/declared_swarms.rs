//! Swarms that are stuck: declared once per episode, and every worker is told once.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deloop_store::{RecordName, SharedRecords, StoreError};
use deloop_types::{Action, Body, Decision, Finding, Millis, Repeats, Step};
use serde::{Deserialize, Serialize};

use super::judge::JudgedStep;
use super::operator_message::add_nudge;
use crate::project::Project;

/// How long an episode lasts if nobody clears the swarm.
const EPISODE: Duration = Duration::from_secs(3_600);
/// Maximum number of declarations per swarm that workers are still told about.
const DECLARATIONS: usize = 8;
/// Maximum number of workers that are remembered in memory as told.
const TOLD: usize = 100_000;
/// The list of declarations of a swarm.
const LIST: &str = "declarations";

/// A call on which a swarm is stuck.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SwarmDeclaration {
    pub(crate) swarm: String,
    /// Identifies the call.
    pattern: String,
    /// When it was declared; tells episodes with the same call apart.
    at: i64,
    /// What every worker is told.
    pub(crate) message: String,
    pub(crate) tool: Option<String>,
    pub(crate) count: u64,
    pub(crate) workers: u64,
}

impl SwarmDeclaration {
    /// Returns what tells this episode from others of the swarm.
    pub(crate) fn episode(&self) -> String {
        format!("{} {}", self.pattern, self.at)
    }
}

/// Declares swarms stuck and tells their workers.
pub(crate) struct DeclaredSwarms {
    records: Arc<dyn SharedRecords>,
    /// Whether other servers declare swarms, too.
    is_shared: bool,
    memory: Mutex<DeclaredMemory>,
}

#[derive(Default)]
struct DeclaredMemory {
    declarations: HashMap<String, Vec<SwarmDeclaration>>,
    told: HashSet<(String, String)>,
}

impl DeclaredSwarms {
    pub(crate) fn new(records: Arc<dyn SharedRecords>, is_shared: bool) -> Self {
        Self { records, is_shared, memory: Mutex::default() }
    }

    /// Adds what the worker of this step must know about its swarm to the decision. Returns a declaration if this step is
    /// the first that shows that the swarm is stuck.
    pub(crate) fn follow(
        &self,
        project: &Project,
        step: &Step,
        judged: &mut JudgedStep,
        now: Millis,
    ) -> Result<Option<SwarmDeclaration>, StoreError> {
        let decision = &mut judged.decision;
        let Some(swarm) = &step.swarm else { return Ok(None) };
        let group = group(project, swarm);
        match &step.body {
            Body::SwarmEnd => return self.clear(project, swarm, now).map(|()| None),
            Body::Turn(_) | Body::Result(_) | Body::User(_) => {}
            _ => return Ok(None),
        }
        let worker = match &step.agent {
            Some(agent) => format!("{}/{agent}", step.session),
            None => step.session.to_string(),
        };
        let finding = decision.findings.iter().find(|f| f.repeats == Repeats::Swarm);
        let finding = finding.filter(|_| decision.action >= Action::Nudge).cloned();
        let mut declared = None;
        if let Some(finding) = &finding {
            let message = finding.evidence.message.clone().or_else(|| judged.for_swarm.take());
            declared = self.declare(&group, swarm, finding, message, now)?;
        }
        for declaration in self.declarations(&group, now)? {
            let own = finding.as_ref().filter(|finding| declaration.pattern == pattern(finding));
            let is_said = own.is_some_and(|finding| says(decision, finding));
            if decision.action == Action::Stop && !is_said {
                break;
            }
            if !self.is_told(&group, &declaration, &worker, now)? && !is_said {
                let about = "deloop told the agent that its swarm is stuck";
                add_nudge(decision, declaration.message, "swarm", about);
                break;
            }
        }
        Ok(declared)
    }

    /// Forgets the declarations of a swarm: if it gets stuck again, that is a new episode.
    pub(crate) fn clear(&self, project: &Project, swarm: &str, now: Millis) -> Result<(), StoreError> {
        let group = group(project, swarm);
        for text in self.records.take(RecordName::new(&group, LIST), now)? {
            if let Ok(declaration) = serde_json::from_str::<SwarmDeclaration>(&text) {
                self.records
                    .release(RecordName::new(&group, &format!("declared {}", declaration.pattern)))?;
            }
        }
        self.memory().declarations.remove(&group);
        Ok(())
    }

    fn declare(
        &self,
        group: &str,
        swarm: &str,
        finding: &Finding,
        message: Option<String>,
        now: Millis,
    ) -> Result<Option<SwarmDeclaration>, StoreError> {
        let pattern = pattern(finding);
        let is_known = |known: &Vec<SwarmDeclaration>| known.iter().any(|d| d.pattern == pattern);
        if !self.is_shared && self.memory().declarations.get(group).is_some_and(is_known) {
            return Ok(None);
        }
        if !self.records.claim(RecordName::new(group, &format!("declared {pattern}")), EPISODE, now)? {
            return Ok(None);
        }
        let workers = finding.evidence.fields.iter().find(|(name, _)| *name == "workers");
        let declaration = SwarmDeclaration {
            swarm: swarm.to_owned(),
            pattern,
            at: now.0,
            message: message.unwrap_or_else(|| format!("[deloop] {}", deloop_policy::told(finding))),
            tool: finding.tool.clone(),
            count: finding.count,
            workers: workers.and_then(|(_, n)| n.parse().ok()).unwrap_or(0),
        };
        let text = serde_json::to_string(&declaration).map_err(StoreError::encode)?;
        self.records.push(RecordName::new(group, LIST), &text, DECLARATIONS, EPISODE, now)?;
        self.memory().declarations.remove(group);
        Ok(Some(declaration))
    }

    fn declarations(&self, group: &str, now: Millis) -> Result<Vec<SwarmDeclaration>, StoreError> {
        if !self.is_shared
            && let Some(known) = self.memory().declarations.get(group)
        {
            return Ok(known.clone());
        }
        let texts = self.records.list(RecordName::new(group, LIST), now)?;
        let listed: Vec<SwarmDeclaration> =
            texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
        if !self.is_shared {
            let mut memory = self.memory();
            if memory.declarations.len() >= TOLD {
                memory.declarations.clear();
            }
            memory.declarations.insert(group.to_owned(), listed.clone());
        }
        Ok(listed)
    }

    /// Returns whether a worker was told already, and notes that it is now.
    fn is_told(
        &self,
        group: &str,
        declaration: &SwarmDeclaration,
        worker: &str,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let episode = declaration.episode();
        let key = (format!("{group} {episode}"), worker.to_owned());
        if self.memory().told.contains(&key) {
            return Ok(true);
        }
        let name = format!("told {episode} {worker}");
        let told = !self.records.claim(RecordName::new(group, &name), EPISODE, now)?;
        let mut memory = self.memory();
        if memory.told.len() >= TOLD {
            memory.told.clear();
        }
        memory.told.insert(key);
        Ok(told)
    }

    fn memory(&self) -> MutexGuard<'_, DeclaredMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the message of a decision tells the agent what this finding says about its swarm. A finding that is
/// only listed doesn't.
fn says(decision: &Decision, finding: &Finding) -> bool {
    let message = decision.message.as_deref().unwrap_or_default();
    match &finding.evidence.message {
        Some(text) => message.contains(text.as_str()),
        None => decision.deciding().is_some_and(|f| f.repeats == Repeats::Swarm),
    }
}

/// Records of one swarm are together on one node of a Redis Cluster.
fn group(project: &Project, swarm: &str) -> String {
    format!("swarm {project}/{swarm}")
}

fn pattern(finding: &Finding) -> String {
    format!("{:016x}", finding.pattern.0)
}
