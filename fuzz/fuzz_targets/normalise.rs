#![no_main]

#[path = "../bodies/normalise.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
