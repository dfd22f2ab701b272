//! Signs the requests of webhooks, as Stripe does.

use std::fmt::{self, Write};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The shortest secret, in bytes.
const SHORTEST: usize = 16;

/// The secret that requests are signed with.
#[derive(Clone)]
pub(crate) struct WebhookSecret(Vec<u8>);

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

impl WebhookSecret {
    /// Reads a secret.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() < SHORTEST {
            return Err(format!(
                "the secret has fewer than {SHORTEST} characters; `openssl rand -hex 32` makes a good one"
            ));
        }
        Ok(Self(text.as_bytes().to_vec()))
    }

    /// Returns the value of `Deloop-Signature` for a body sent at this time, in seconds.
    pub(crate) fn signature(&self, seconds: i64, body: &[u8]) -> String {
        let mut out = format!("t={seconds},v1=");
        // HMAC takes keys of any length.
        if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) {
            mac.update(format!("{seconds}.").as_bytes());
            mac.update(body);
            for byte in mac.finalize().into_bytes() {
                let _ = write!(out, "{byte:02x}");
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::WebhookSecret;

    /// The value is that of `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef`.
    #[test]
    fn a_signature_is_hmac_sha256_of_time_and_body() {
        let secret = WebhookSecret::parse("0123456789abcdef").unwrap();
        let signature = secret.signature(1_700_000_000, br#"{"a":1}"#);
        assert_eq!(
            signature,
            "t=1700000000,v1=9eb18f493f8ec135d9eb2dad817c369bb4e9cbfa818657897a7437c1cd8c3a23"
        );
        assert!(WebhookSecret::parse("short").unwrap_err().contains("openssl rand"));
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
    }
}
