//! The native part of deloop for Node. The JavaScript around it (`ts/core`) turns values into JSON and back: one string
//! each way is cheaper than many values.
#![expect(clippy::needless_pass_by_value, reason = "Node-API passes values, not references")]

mod answer;
mod guard;
mod steps;
