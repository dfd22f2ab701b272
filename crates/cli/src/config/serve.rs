//! The settings of `deloop serve`.

use std::path::Path;

use serde_json::Value;

use super::from_home;
use super::sources::Layer;

/// The settings that name a file.
const FILES: [&str; 7] = [
    "/serve/tls/certificate",
    "/serve/tls/key",
    "/serve/redis/password_file",
    "/serve/audit/key_file",
    "/serve/redis/ca_file",
    "/serve/redis/certificate",
    "/serve/redis/key",
];

/// Makes the paths in this layer's settings relative to its file, or to the home folder if they start with `~/`.
pub(super) fn anchor_files(document: &mut Value, layer: &Layer) {
    let folder = layer.path.parent().unwrap_or(Path::new(""));
    for pointer in FILES {
        if let Some(Value::String(path)) = document.pointer_mut(pointer) {
            *path = folder.join(from_home(path)).to_string_lossy().into_owned();
        }
    }
}
