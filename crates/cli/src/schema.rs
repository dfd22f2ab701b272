//! `deloop schema`: prints JSON Schemas for editors and other programs.

use std::io::Write;

use deloop_policy::{Registry, config_schema};
use deloop_types::{Decision, Event, Step};
use serde_json::Value;

use crate::args::{SchemaArgs, SchemaOf};
use crate::exit::{self, Failure};
use crate::hook::behavioral::{Input, Output, ToolEvent};
use crate::run::result::RunResult;
use crate::scan::Comparison;
use crate::scan::report::ScanReport;

pub(crate) fn run(args: &SchemaArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    serde_json::to_writer_pretty(&mut *out, &schema(args.of))?;
    out.write_all(b"\n")?;
    Ok(exit::OK)
}

fn schema(of: SchemaOf) -> Value {
    match of {
        SchemaOf::Config => config_schema(&Registry::default()),
        SchemaOf::Step => Step::schema(),
        SchemaOf::Decision => schemars::schema_for!(Decision).to_value(),
        SchemaOf::Event => schemars::schema_for!(Event).to_value(),
        SchemaOf::Scan => schemars::schema_for!(ScanReport).to_value(),
        SchemaOf::Compare => schemars::schema_for!(Comparison).to_value(),
        #[cfg(feature = "serve")]
        SchemaOf::DailyReport => schemars::schema_for!(deloop_server::DailyReport).to_value(),
        #[cfg(feature = "serve")]
        SchemaOf::WeeklyReport => schemars::schema_for!(deloop_server::WeeklyReport).to_value(),
        #[cfg(feature = "serve")]
        SchemaOf::Budgets => schemars::schema_for!(deloop_server::BudgetsReport).to_value(),
        SchemaOf::RunResult => schemars::schema_for!(RunResult).to_value(),
        SchemaOf::HookInput => schemars::schema_for!(Input).to_value(),
        SchemaOf::HookOutput => schemars::schema_for!(Output).to_value(),
        SchemaOf::ToolEvent => schemars::schema_for!(ToolEvent).to_value(),
        #[cfg(feature = "serve")]
        SchemaOf::Openapi => deloop_server::openapi_document(),
    }
}
