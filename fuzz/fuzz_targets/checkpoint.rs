#![no_main]

#[path = "../bodies/checkpoint.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
