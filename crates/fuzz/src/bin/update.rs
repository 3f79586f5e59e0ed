//! Fuzzer for [`fuzz::zone::update`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::zone::update(input));
