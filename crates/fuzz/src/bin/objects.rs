//! Fuzzer for [`fuzz::objects::decode`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::objects::decode(input));
