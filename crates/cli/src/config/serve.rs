//! The settings of `deloop serve`.

use std::path::Path;

use serde_json::Value;

use super::sources::Layer;

/// The settings that name a file.
const FILES: [&str; 2] = ["/serve/tls/certificate", "/serve/tls/key"];

/// Makes the paths in this layer's settings relative to its file.
pub(super) fn anchor_files(document: &mut Value, layer: &Layer) {
    let folder = layer.path.parent().unwrap_or(Path::new(""));
    for pointer in FILES {
        if let Some(Value::String(path)) = document.pointer_mut(pointer) {
            *path = folder.join(&*path).to_string_lossy().into_owned();
        }
    }
}
