//! The target that the program is named after.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::target(env!("CARGO_BIN_NAME"))(input));
