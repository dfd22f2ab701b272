//! What happens on all servers, for those who listen at `GET /v1/events`.

mod hub;
mod server_event;

pub(crate) use hub::{EventHub, PublishedEvent};
pub(crate) use server_event::ServerEvent;
