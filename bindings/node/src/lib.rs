//! The native part of deloop for Node. The JavaScript around it (`ts/core`) turns values into JSON and back: one value
//! each way is cheaper than many.

#![expect(clippy::needless_pass_by_value, reason = "texts from JavaScript arrive as a copy of their own")]

mod answer;
pub mod guard;
pub mod steps;
