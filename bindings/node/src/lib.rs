//! The native part of deloop for Node. The JavaScript around it (`ts/core`) turns values into JSON and back: one value
//! each way is cheaper than many.

mod answer;
mod guard;
mod steps;
