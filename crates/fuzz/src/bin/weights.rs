//! Fuzzer for [`fuzz::files::weights`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::files::weights(input));
