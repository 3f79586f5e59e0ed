//! Fuzzer for [`fuzz::files::geoip`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::files::geoip(input));
