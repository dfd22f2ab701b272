use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use deloop_store::EventCursor;
use futures_util::stream::{Stream, unfold};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::access::{ListenerPlace, may_continue};
use crate::events::PublishedEvent;
use crate::http_error::HttpError;
use crate::openapi::{ApiContent, ApiOperation, ApiParameter};
use crate::project::Project;
use crate::requester::Requester;
use crate::shared::{Shared, blocking};

/// How often a connection without events shows that it is alive.
const ALIVE: Duration = Duration::from_secs(15);

/// What an event looks like on the wire.
const EXAMPLE: &str = "id: 1763337600000-0\nevent: nudge\ndata: {\"event\":\"nudge\",\"session\":\"s1\",\"step\":7,\"project\":\"default\"}\n\n";

pub(super) fn operations() -> Vec<ApiOperation> {
    vec![
        ApiOperation::get("/v1/events", "listen_for_events", listen)
            .summary("Listen for events of all servers")
            .details(
                "Server-sent events that never end. `data` is a JSON object with `event` (the kind), `project`, `ts` \
                 and what the event is about, such as `session`, `swarm`, `reason` or `actor`. A client that reads \
                 too slowly gets the event `missed`, whose data is the number of events that it missed.",
            )
            .parameter(ApiParameter::query(
                "session",
                "Only events about this session.",
                json!({"type": "string"}),
                json!("s1"),
            ))
            .parameter(ApiParameter::query(
                "kinds",
                "Only events of these kinds, separated by commas.",
                json!({"type": "string"}),
                json!("nudge,session.terminated"),
            ))
            .parameter(ApiParameter::header(
                "Last-Event-ID",
                "The id of the last event that the client got; those after it that are still kept come first.",
                json!({"type": "string", "pattern": "^[0-9]{1,19}(-[0-9]{1,19})?$"}),
                json!("1763337600000-0"),
            ))
            .answers("Events, as they happen.", ApiContent::text("text/event-stream", EXAMPLE))
            .refuses(
                StatusCode::BAD_REQUEST,
                "`session` or `kinds` is there twice, or `Last-Event-ID` isn't the id of an event.",
            ),
    ]
}

/// Which events to send.
#[derive(Deserialize)]
struct EventQuery {
    session: Option<String>,
    /// Kinds, separated by commas.
    kinds: Option<String>,
}

struct EventFilter {
    project: Project,
    session: Option<String>,
    kinds: Option<Vec<String>>,
}

impl EventFilter {
    fn passes(&self, event: &PublishedEvent) -> bool {
        let about = &event.about;
        about.project == self.project.as_str()
            && (self.session.is_none() || self.session == about.session)
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&about.event))
    }
}

/// `GET /v1/events`: what happens in the project on all servers, as server-sent events.
async fn listen(
    State(shared): State<Arc<Shared>>,
    requester: Requester,
    query: Result<Query<EventQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let wrong = |_| HttpError::bad_request("`session` is the name of a session and `kinds` a list of events");
    let Query(EventQuery { session, kinds }) = query.map_err(wrong)?;
    let after = headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default().parse::<EventCursor>());
    let after = after
        .transpose()
        .map_err(|_| HttpError::bad_request("`Last-Event-ID` isn't the id of an event of this server"))?;
    let places = take_place(&shared, &requester).inspect_err(|_| shared.metrics.listener_refused())?;
    let kinds = kinds.map(|kinds| kinds.split(',').map(|kind| kind.trim().to_owned()).collect());
    let filter = EventFilter { project: requester.project.clone(), session, kinds };
    // Listens before it reads what was missed, so that nothing falls between the two.
    let next = shared.broker.events().listen();
    let missed = match after {
        Some(cursor) => {
            blocking(&shared, move |access| access.with(|broker, _| broker.events().since(cursor))).await?
        }
        None => Vec::new(),
    };
    let read_to = missed.last().map(|event| event.read_to);
    let stopping = shared.stopping.subscribe();
    let missed = missed.into();
    let listener =
        EventListener { missed, read_to, next, stopping, filter, shared, requester, _places: places };
    Ok(Sse::new(listener.stream()).keep_alive(KeepAlive::new().interval(ALIVE)).into_response())
}

/// A listener's places among all of the server and those of its key.
type ListenerPlaces = (OwnedSemaphorePermit, Option<ListenerPlace>);

fn take_place(shared: &Shared, requester: &Requester) -> Result<ListenerPlaces, HttpError> {
    let of_key = requester.allowance.as_ref().map(|allowance| {
        let full = || HttpError::too_many_listeners(allowance.limits().listeners);
        allowance.take_listener().ok_or_else(full)
    });
    let of_key = of_key.transpose()?;
    let of_server = Arc::clone(&shared.listeners).try_acquire_owned().map_err(|_| {
        let message = "the server has as many listeners for events as it takes; close one of them";
        HttpError::new(StatusCode::SERVICE_UNAVAILABLE, message)
    })?;
    Ok((of_server, of_key))
}

struct EventListener {
    missed: VecDeque<PublishedEvent>,
    read_to: Option<EventCursor>,
    next: Receiver<PublishedEvent>,
    stopping: watch::Receiver<bool>,
    filter: EventFilter,
    shared: Arc<Shared>,
    requester: Requester,
    _places: ListenerPlaces,
}

impl EventListener {
    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        unfold(self, async |mut listener| {
            let event = listener.next().await?;
            Some((Ok(event), listener))
        })
    }

    /// Waits for the next event; `None` when the server stops or the listener's key is no longer valid.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let event = match self.missed.pop_front() {
                Some(event) => event,
                None => tokio::select! {
                    event = self.next.recv() => match event {
                        Ok(event) if self.read_to.is_some_and(|read| event.read_to <= read) => continue,
                        Ok(event) => event,
                        Err(RecvError::Lagged(missed)) => {
                            return Some(Event::default().event("missed").data(missed.to_string()));
                        }
                        Err(RecvError::Closed) => return None,
                    },
                    _ = self.stopping.wait_for(|stopping| *stopping) => return None,
                },
            };
            if self.filter.passes(&event) {
                if !may_continue(&self.shared, &self.requester) {
                    return None;
                }
                let id = event.resume.to_string();
                return Some(Event::default().id(id).event(&event.about.event).data(&*event.text));
            }
        }
    }
}
