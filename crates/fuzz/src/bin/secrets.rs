//! Fuzzer for [`fuzz::files::secrets`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::files::secrets(input));
