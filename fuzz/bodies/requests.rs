//! Any bytes as what `deloop serve` is sent: they are read, or an error says why not.

/// The first byte says what it is; the rest is the body.
///
/// # Panics
/// When reading panics, or an answer isn't JSON.
pub(crate) fn run(data: &[u8]) {
    let [kind, body @ ..] = data else { return };
    deloop_server::fuzzing::read_request(*kind, body);
}
