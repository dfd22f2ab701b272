//! The names that a model goes by.

/// Returns the names that a model's price may be listed under, most specific first and in lower case:
/// `us.anthropic.claude-opus-4-5-20251101-v1:0`, then without date and version, host, region and vendor. The last one is
/// the bare name.
pub(super) fn candidates(model: &str) -> Vec<String> {
    let model = model.to_ascii_lowercase();
    let own = model.rsplit('/').next().unwrap_or(&model);
    let bare = without_vendor(own);
    let mut names: Vec<String> = Vec::with_capacity(6);
    for name in [&model, own, bare] {
        for name in [name, undated(name)] {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    let bare = undated(bare);
    if bare.starts_with("claude-") {
        // Some agents write `claude-opus-4.6` for `claude-opus-4-6`, and `claude-opus-4-0` is `claude-opus-4`.
        let dashed = bare.replace('.', "-");
        let dashed = dashed.strip_suffix("-0").unwrap_or(&dashed);
        if dashed != bare {
            names.push(dashed.to_owned());
        }
    }
    names
}

/// Returns a name without the region and vendor in front, such as `us.anthropic.`.
pub(super) fn without_vendor(name: &str) -> &str {
    let mut name = name;
    while let Some((first, rest)) = name.split_once('.')
        && first.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
        && !rest.is_empty()
    {
        name = rest;
    }
    name
}

/// Returns a model's name without `-20251101`, `-2025-11-01`, `@20251101`, `-latest`, `@default`, `-v1`, `-v1:0` or `[1m]` at its
/// end.
#[must_use]
pub fn undated(name: &str) -> &str {
    let name = name.split_once('[').map_or(name, |(before, _)| before);
    let name = unversioned(name);
    for alias in ["-latest", "@latest", "@default"] {
        if let Some(before) = name.strip_suffix(alias) {
            return before;
        }
    }
    let is_date = |text: &str| {
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        digits == 8 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
    };
    for length in [8, 10] {
        let Some(cut) = name.len().checked_sub(length + 1) else { continue };
        if name.is_char_boundary(cut)
            && let Some(date) = name[cut..].strip_prefix(['-', '@'])
            && is_date(date)
        {
            return &name[..cut];
        }
    }
    name
}

/// Cuts off `-v1` or `-v2:0`. A plain `-v3` stays, because it can be the model's own version.
fn unversioned(name: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match name.rsplit_once("-v") {
        Some((before, "1")) => before,
        Some((before, version)) => match version.split_once(':') {
            Some((major, minor)) if is_number(major) && is_number(minor) => before,
            _ => name,
        },
        None => name,
    }
}
