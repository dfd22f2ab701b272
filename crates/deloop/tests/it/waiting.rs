//! A repeated look at something outside is judged by its cost and its rate; a repeated failure by its count. The time is
//! the `ts` of the steps.

mod burning;
mod found;
mod heartbeats;
mod honest;
mod progress;
mod rules;
mod services;
mod session;
mod stuck;
