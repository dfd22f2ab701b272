//! Removes secrets from commands and texts.
//!
//! A call is redacted before its short form enters a history, so its secrets never reach any state, message, finding,
//! log, report or label. Makes one pass over the words of a text, without recursion or backtracking.

mod keys;
mod names;
mod providers;
mod scan;
mod shapes;

use std::borrow::Cow;

use serde_json::Value;

pub use self::names::is_secret_name;
use self::scan::Scan;

/// The replacement for a secret.
pub const SECRET: &str = "[secret]";

/// Returns `text` without its secrets; borrowed when there are none.
///
/// ```
/// use deloop_detect::redact;
/// assert_eq!(redact("curl -u me:hunter2 https://x.example"), "curl -u me:[secret] https://x.example");
/// assert_eq!(redact("cargo test --workspace"), "cargo test --workspace");
/// ```
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let secrets = Scan::new(text).run();
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (start, end) in secrets {
        if start >= copied {
            out.push_str(&text[copied..start]);
            out.push_str(SECRET);
            copied = end;
        }
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns arguments without their secrets; `None` when there are none. Long texts are truncated.
pub(crate) fn redacted(args: &Value) -> Option<Value> {
    /// More than a normalized form shows.
    const MOST: usize = 4096;
    match args {
        Value::String(text) => {
            let end = (0..=text.len().min(MOST)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            match redact(&text[..end]) {
                Cow::Borrowed(_) => None,
                Cow::Owned(text) => Some(Value::String(text)),
            }
        }
        Value::Array(items) => {
            let mut changed: Vec<Option<Value>> = items.iter().take(MOST).map(redacted).collect();
            changed.iter().any(Option::is_some).then(|| {
                let all =
                    changed.iter_mut().zip(items).map(|(new, old)| new.take().unwrap_or_else(|| old.clone()));
                Value::Array(all.collect())
            })
        }
        Value::Object(map) => {
            let mut new = None;
            for (key, value) in map.iter().take(MOST) {
                let named = matches!(value, Value::String(_)) && is_secret_name(key);
                let value = if named { Some(Value::from(SECRET)) } else { redacted(value) };
                if let Some(value) = value {
                    new.get_or_insert_with(|| map.clone()).insert(key.clone(), value);
                }
            }
            new.map(Value::Object)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deloop_testing::assert_reads_linearly;

    #[test]
    fn secrets_go_and_what_says_what_they_are_stays() {
        for (text, expected) in [
            ("curl -u me:hunter2 https://x.example", "curl -u me:[secret] https://x.example"),
            ("curl -ume:hunter2 x", "curl -ume:[secret] x"),
            ("mysql -uroot -phunter2 db", "mysql -uroot -p[secret] db"),
            ("DB_PASS=hunter2 ./run", "DB_PASS=[secret] ./run"),
            ("export PGPASSWORD='hunter2'; psql", "export PGPASSWORD='[secret]'; psql"),
            ("deploy --token hunter2 now", "deploy --token [secret] now"),
            ("deploy --pat=hunter2", "deploy --pat=[secret]"),
            ("git clone https://me:hunter2@host/x", "git clone https://me:[secret]@host/x"),
            ("curl -H 'Authorization: Bearer abc.def' x", "curl -H 'Authorization: Bearer [secret]' x"),
            ("curl -H 'X-Api-Key: hunter2' x", "curl -H 'X-Api-Key: [secret]' x"),
            ("curl -H 'Cookie: sid=hunter2; csrf=me2' x", "curl -H 'Cookie: [secret]; [secret]' x"),
            (r#"{"password": "hunter2"}"#, r#"{"password": "[secret]"}"#),
            (r#"{"apiKey":"hunter2","n":1}"#, r#"{"apiKey":"[secret]","n":1}"#),
            ("docker login -u me -p hunter2", "docker login -u me -p [secret]"),
            ("sshpass -p hunter2 ssh me@host", "sshpass -p [secret] ssh me@host"),
            ("redis-cli -a hunter2 ping", "redis-cli -a [secret] ping"),
            ("curl 'https://x/y?a=1&api_key=hunter2'", "curl 'https://x/y?a=1&api_key=[secret]'"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "[secret]"),
            ("git clone https://me:hunt", "git clone https://me:[secret]"),
            ("run wJalrXUtnFEMI/K7MDENG/bPxRfiCY3x4mpl3K3Y", "run [secret]"),
            ("use acme_live_q7x2m9k4z8w3v6t1n5p0", "use [secret]"),
            ("use acme_3f9a8b7c6d5e4f3a2b1c0d9e", "use [secret]"),
            ("export REGION=qX7vB2nM9kL4pR8tW1zC", "export REGION=[secret]"),
            (
                "GET /v1/organizations/hooks/qX7vB2nM9kL4pR8tW1zC/run",
                "GET /v1/organizations/hooks/[secret]/run",
            ),
            ("use xKqZbTnWpLrYvMcJhGdFaQsE", "use [secret]"),
        ] {
            assert_eq!(redact(text), expected);
        }
    }

    /// Assembled here, so that secret scanners don't report this repository.
    #[test]
    fn tokens_whose_parts_have_a_fixed_length_go() {
        let tail = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4";
        for token in [
            format!("ab12cd34ef56gh.{}v1.{tail}{tail}", "atlas"),
            format!("MTIzNDU2Nzg5MDEyMzQ1Njc4OQ.{}.{tail}", "Gabcde"),
            format!("MTIzNDU2Nzg5MDEyMzQ1Njc4OQ.{}.{}", "XyZ-_1", &tail[..27]),
            format!("ab~8Q{}{}", "~", &tail[..31]).replacen("ab~", "abc", 1),
            format!("{}AbCdEfGhIjKlMn.{}", "pat", "0123456789abcdef".repeat(4)),
        ] {
            let text = format!("deploy '{token}' now");
            assert_eq!(redact(&text), "deploy '[secret]' now", "{token}");
        }
        for text in [
            "src/components.module.rs/index.component.spec.ts and more.than.that.is.here",
            "com.example.application.configuration.production.Settings",
            "ab12cd34ef56gh.atlasv1.short",
            "path/to/pattern-matching-utilities.0123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "max_tokens: 100000",
            "input_tokens=1200",
            "token=$GITHUB_TOKEN",
            "cargo test --workspace --all-features",
            "git show 3f2a1c9e0b7d4e5f6a7b8c9d0e1f2a3b4c5d6e7f",
            "a risk-assessment of task-runners",
            "3f2a1c9e-0b7d-4e5f-6a7b-8c9d0e1f2a3b",
            "src/tokenizer/2026/main_test.rs",
            "cat .local/state/deloop/handoff-r0bc4b1d98f65.md",
            "ls target/debug/build/ring-4d1e9a5b7c30f28e/out",
            "kubectl logs checkout-service-5d4f8c7b9-x2k4q",
            "docker run -p 8080:80 -u 1000:1000 image",
            "mkdir -p build/output/directory",
            "ssh -p 2222 git@host.example",
            "curl http://localhost:8080",
            "pip install sk-learn-contrib key-value-store",
            "pytest tests/test_user_login_2024_01_15.py::TestHandlerV2ReturnsError404",
            "TestHandlerV2ReturnsError404WhenMissing",
            "git log --author=someone --pretty=oneline",
            "grep -rn 'password' src",
            "cat tokens.txt | sort -u",
            "npm_config_loglevel=silent npm run build",
            "https://example.com/path/to/some-long-article-about-2024-things",
            "kubectl get pods -n kube-system",
            "runs/2026-06-29T02-51-25-032Z/local-proxy/case--3d1e8b8bde59/run-1/transcript.jsonl",
            "./gradlew :app:testDebugUnitTestCoverageForHTTPServerV2",
            "image registry.example/team/service@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "x86_64-unknown-linux-gnu aarch64-apple-darwin",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn hostile_input_stays_linear() {
        assert_reads_linearly(
            &[
                "a=",
                "token=",
                "://",
                ":@",
                "sk-",
                "-u ",
                "Bearer ",
                "aA1",
                "-----BEGIN ",
                "\"'",
                "é",
                "Cookie: ",
                "aaaaaaaaaaaaaa.atlasv1.",
                "abc8Q~",
                "MTIzNDU2Nzg5MDEyMzQ1Njc4OQ.abcdef.",
                "=/",
            ],
            |text| drop(redact(text)),
        );
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "[a-zA-Z0-9 '\"=:@/?&;._é-]{0,120}") {
            let _ = redact(&text);
        }
    }
}
