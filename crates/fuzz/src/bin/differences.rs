//! Fuzzer for [`fuzz::zone::differences`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::zone::differences(input));
