//! Steps of a trajectory to Steps.

use std::collections::HashSet;

use deloop_types::{Body, Call, Origin, Outcome};

use super::metrics::{FinalMetrics, ReportedUsage, StepMetrics};
use super::outcome::{ResultExtra, of_text};
use super::record::{
    AtifAgent, AtifAgentExtra, AtifCall, AtifImageSource, AtifObservation, AtifResult, AtifStep,
    AtifStepExtra, AtifTrajectory, ContextManagement, ImagePart,
};
use crate::json::document;
use crate::json::field::{self, Field};
use crate::json::tolerant::Json;
use crate::step_writer::StepWriter;
use crate::text::{append, stand_in};
use crate::{Reader, Sink, Source};

/// Trajectories embedded deeper than that aren't read.
const DEEPEST: usize = 8;

/// What Terminus writes where it has summarized its context.
const SUMMARIZED: &str = "Performed context summarization and handoff";

/// Reads one file.
pub(super) struct AtifFile {
    /// The session of a trajectory that names none.
    name: Option<String>,
}

impl AtifFile {
    /// Harbor writes to `JOB/TRIAL/agent/trajectory.json`.
    pub(super) fn new(source: &Source<'_>) -> Self {
        let folder = source.path.and_then(|path| path.parent());
        let trial = folder
            .filter(|folder| folder.ends_with("agent") && source.stem() == Some("trajectory"))
            .and_then(|folder| folder.parent()?.file_name()?.to_str());
        Self { name: trial.or(source.stem()).map(str::to_owned) }
    }
}

impl Reader for AtifFile {
    fn read(&mut self, bytes: &[u8], out: &mut Sink<'_>) {
        document::each(bytes, out, |raw, out| {
            let Some(trajectory) = field::object::<AtifTrajectory<'_>>(Some(raw)) else {
                return out.unreadable("not an object");
            };
            let agent: AtifAgent<'_> = field::object(trajectory.agent).unwrap_or_default();
            let extra: AtifAgentExtra<'_> = field::object(agent.extra).unwrap_or_default();
            let first = field::items(extra.cwds).into_iter().next();
            out.report.version = field::name(agent.version).or_else(|| out.report.version.take());
            out.report.project = field::name(extra.cwd.or(first)).or_else(|| out.report.project.take());
            let session = field::name(trajectory.session_id)
                .or_else(|| field::name(trajectory.trajectory_id))
                .or_else(|| self.name.clone());
            let mut reported = ReportedUsage::default();
            let mut run = AtifRun::new(StepWriter::new(session), &agent);
            run.trajectory(&trajectory, 0, &mut reported, out);
            let totals: FinalMetrics<'_> = field::object(trajectory.final_metrics).unwrap_or_default();
            let beyond = reported.beyond(&totals, run.model.clone());
            run.writer.usage(beyond, None, out);
        });
    }
}

/// The run of one agent.
struct AtifRun {
    writer: StepWriter,
    /// The name of the program.
    program: String,
    model: Option<String>,
    /// Whether the agent has done anything.
    begun: bool,
}

impl AtifRun {
    fn new(writer: StepWriter, agent: &AtifAgent<'_>) -> Self {
        let model = field::name(agent.model_name);
        Self { writer, program: field::string(agent.name), model, begun: false }
    }

    fn trajectory(
        &mut self,
        trajectory: &AtifTrajectory<'_>,
        depth: usize,
        reported: &mut ReportedUsage,
        out: &mut Sink<'_>,
    ) {
        for step in field::list::<AtifStep<'_>>(trajectory.steps) {
            match step {
                // It was done in an earlier trajectory, which has a file of its own.
                Some(step) if field::flag(step.is_copied_context) == Some(true) => {}
                Some(step) => self.step(&step, reported, out),
                None => out.unknown("step"),
            }
        }
        if depth >= DEEPEST {
            return;
        }
        for (number, raw) in field::items(trajectory.subagent_trajectories).into_iter().enumerate() {
            let Some(embedded) = field::object::<AtifTrajectory<'_>>(Some(raw)) else { continue };
            let agent: AtifAgent<'_> = field::object(embedded.agent).unwrap_or_default();
            let name = field::name(embedded.trajectory_id).or_else(|| field::name(embedded.session_id));
            let mut writer = StepWriter::new(Some(self.writer.session.clone()));
            writer.agent = Some(name.unwrap_or_else(|| format!("subagent-{}", number + 1)));
            Self::new(writer, &agent).trajectory(&embedded, depth + 1, reported, out);
        }
    }

    fn step(&mut self, step: &AtifStep<'_>, reported: &mut ReportedUsage, out: &mut Sink<'_>) {
        self.writer.ts = field::time(step.timestamp);
        match field::string(step.source).as_str() {
            "agent" => self.agent(step, reported, out),
            "user" => {
                let origin = if self.writer.agent.is_some() { Origin::Harness } else { Origin::Human };
                self.writer.user(field::content(step.message), origin, out);
            }
            "system" => self.system(step, out),
            "" => out.unknown("(no source)"),
            other => out.unknown(other),
        }
    }

    /// A system prompt, which isn't read, or what the program around the agent did while it worked.
    fn system(&mut self, step: &AtifStep<'_>, out: &mut Sink<'_>) {
        let text = field::content(step.message);
        let extra: AtifStepExtra<'_> = field::object(step.extra).unwrap_or_default();
        let change: ContextManagement<'_> = field::object(extra.context_management).unwrap_or_default();
        let is_compaction =
            matches!(field::string(change.kind).as_str(), "compaction" | "pruning" | "summarization")
                || matches!(field::string(change.boundary).as_str(), "replace" | "truncate");
        if is_compaction || text.starts_with(SUMMARIZED) {
            self.writer.write(Body::Compact, out);
        } else if self.begun {
            self.writer.user(text, Origin::Harness, out);
        }
    }

    fn agent(&mut self, step: &AtifStep<'_>, reported: &mut ReportedUsage, out: &mut Sink<'_>) {
        self.begun = true;
        let calls: Vec<Call> =
            field::list::<AtifCall<'_>>(step.tool_calls).iter().flatten().map(call).collect();
        let mut text = field::content(step.message);
        if calls.iter().any(|call| is_stand_in(&text, call)) {
            text.clear();
        }
        let ids: Vec<Option<String>> = calls.iter().map(|call| call.id.clone()).collect();
        let tools: Vec<String> = calls.iter().map(|call| call.tool.clone()).collect();
        self.writer.turn(text, calls, out);
        let metrics: Option<StepMetrics<'_>> = field::object(step.metrics);
        if let Some(metrics) = metrics {
            let usage = metrics.usage(field::name(step.model_name).or_else(|| self.model.clone()));
            reported.add(&usage);
            self.writer.usage(usage, None, out);
        }
        self.results(step, &ids, &tools, out);
    }

    fn results(&self, step: &AtifStep<'_>, ids: &[Option<String>], tools: &[String], out: &mut Sink<'_>) {
        let mut open = ids.to_owned();
        let observation: AtifObservation<'_> = field::object(step.observation).unwrap_or_default();
        let results: Vec<AtifResult<'_>> = field::list(observation.results).into_iter().flatten().collect();
        let step_extra: Option<ResultExtra<'_>> =
            if open.len() == 1 { field::object(step.extra) } else { None };
        let named: HashSet<String> =
            results.iter().filter_map(|result| field::name(result.source_call_id)).collect();
        open.retain(|id| id.as_ref().is_none_or(|id| !named.contains(id)));
        for result in &results {
            let content = content(result.content);
            let id = match field::name(result.source_call_id) {
                Some(id) => Some(id),
                // One result for all calls of a step is what came after the last.
                None => match open.pop() {
                    Some(id) => id,
                    None => {
                        self.writer.user(content, Origin::Harness, out);
                        continue;
                    }
                },
            };
            let extra: Option<ResultExtra<'_>> = field::object(result.extra);
            let at = ids.iter().position(|known| *known == id);
            let tool = at.and_then(|at| tools.get(at)).map_or("", String::as_str);
            let (output, told) = of_text(&self.program, tool, &content);
            let noted = [&extra, &step_extra].into_iter().flatten().find_map(ResultExtra::outcome);
            let outcome = match (noted, told) {
                // Only the text says how a call failed.
                (Some(Outcome::Error), Some(told)) if told != Outcome::Ok => Some(told),
                (noted, told) => noted.or(told),
            };
            let output = result.content.is_some().then(|| output.to_owned());
            self.writer.result(id, outcome, output, out);
        }
    }
}

fn call(call: &AtifCall<'_>) -> Call {
    let arguments = Json(field::json(call.arguments)).into_args();
    let mut made = Call::new(field::string(call.function_name), arguments);
    made.id = field::name(call.tool_call_id);
    made
}

/// Returns whether an exporter wrote this because the model wrote nothing. It has the id of the call, so no two are equal.
fn is_stand_in(text: &str, call: &Call) -> bool {
    let id = call.id.as_deref().unwrap_or_default();
    text.strip_prefix("Executed ")
        .and_then(|rest| rest.strip_suffix(id))
        .is_some_and(|rest| rest.strip_suffix(' ').is_some_and(|tool| tool == call.tool))
}

/// Returns the text of a result, with a placeholder for each picture.
fn content(field: Field<'_>) -> String {
    let mut text = field::content(field);
    for part in field::list::<ImagePart<'_>>(field).into_iter().flatten() {
        let source: AtifImageSource<'_> = field::object(part.source).unwrap_or_default();
        if let Some(path) = field::text(source.path) {
            append(&mut text, stand_in("image", &path).into());
        }
    }
    text
}
