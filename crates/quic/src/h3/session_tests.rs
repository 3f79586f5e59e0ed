use super::*;

fn control(frames: &[u8]) -> Result<bool, ConnectionError> {
    let mut stream = vec![0];
    stream.extend_from_slice(frames);
    UniStream::default().feed(&mut Session::default(), &stream)
}

fn frame(frame_type: u64, payload: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    put_frame(&mut output, FrameType(frame_type), payload);
    output
}

fn code_of<T>(outcome: Result<T, ConnectionError>) -> u32 {
    outcome.map_or_else(|error| error.code, |_| 0)
}

const SETTINGS: &[u8] = &[0x4, 0x0];

#[test]
fn accepts_the_control_stream_of_usual_clients_byte_by_byte() {
    // Table size, blocked streams, longest section, a reserved setting; GOAWAY, MAX_PUSH_ID, a reserved frame.
    let settings = [1, 0, 7, 0, 6, 0x44, 0x00, 0x21, 0x05];
    let stream = [vec![0], frame(0x4, &settings), frame(0x7, &[0]), frame(0xd, &[5]), frame(0x21, &[9; 100])].concat();
    let (mut reader, mut session) = (UniStream::default(), Session::default());
    for byte in &stream {
        assert_eq!(reader.feed(&mut session, &[*byte]), Ok(true));
    }
    assert_eq!(reader.feed(&mut session, &stream[1..1]), Ok(true));
    assert_eq!(code_of(reader.end()), code::CLOSED_CRITICAL_STREAM);
}

#[test]
fn refuses_what_does_not_belong_to_the_control_stream() {
    let after_settings = |more: &[u8]| code_of(control(&[SETTINGS, more].concat()));
    assert_eq!(code_of(control(&frame(0x21, &[]))), code::MISSING_SETTINGS);
    assert_eq!(code_of(control(&frame(0x0, &[]))), code::MISSING_SETTINGS);
    for unexpected in [0x0, 0x1, 0x2, 0x4, 0x5, 0x6, 0x8, 0x9] {
        assert_eq!(after_settings(&frame(unexpected, &[])), code::FRAME_UNEXPECTED, "{unexpected}");
    }
    assert_eq!(after_settings(&frame(0x3, &[0])), code::ID_ERROR);
    assert_eq!(code_of(control(&frame(0x4, &[2, 0]))), code::SETTINGS_ERROR);
    assert_eq!(code_of(control(&frame(0x4, &[6, 0, 6, 0]))), code::SETTINGS_ERROR);
    assert_eq!(code_of(control(&frame(0x4, &[6]))), code::FRAME_ERROR);
    assert_eq!(code_of(control(&frame(0x4, &[0x21; 2000]))), code::EXCESSIVE_LOAD);
}

#[test]
fn refuses_critical_streams_that_exist_twice_and_pushes() {
    for stream_type in [CONTROL, ENCODER, DECODER] {
        let mut session = Session::default();
        let open = |session: &mut Session| {
            let byte = u8::try_from(stream_type).unwrap();
            code_of(UniStream::default().feed(session, &[byte]))
        };
        assert_eq!([open(&mut session), open(&mut session)], [0, code::STREAM_CREATION_ERROR], "{stream_type}");
    }
    assert_eq!(code_of(UniStream::default().feed(&mut Session::default(), &[1])), code::STREAM_CREATION_ERROR);
}

#[test]
fn ignores_streams_of_unknown_types() {
    let (mut stream, mut session) = (UniStream::default(), Session::default());
    assert_eq!(stream.feed(&mut session, &[0x40]), Ok(true));
    assert_eq!(stream.feed(&mut session, &[0x21, 1, 2]), Ok(false));
    assert_eq!(stream.feed(&mut session, &[3; 5000]), Ok(false));
    assert!(stream.end().is_ok());
}

#[test]
fn allows_no_instruction_that_needs_a_dynamic_table() {
    let feed = |bytes: &[u8]| code_of(UniStream::default().feed(&mut Session::default(), bytes));
    // Capacity 0, capacity 100, insertion, duplication.
    assert_eq!(feed(&[2, 0x20, 0x20]), 0);
    for instruction in [&[2, 0x3f, 0x45][..], &[2, 0xc1, 1, b'x'], &[2, 0x01]] {
        assert_eq!(feed(instruction), code::QPACK_ENCODER_STREAM_ERROR, "{instruction:?}");
    }
    // Cancelled streams 4 and 1337; acknowledgement; increment.
    assert_eq!(feed(&[3, 0x44, 0x7f, 0xfa, 0x09, 0x48]), 0);
    for instruction in [&[3, 0x84][..], &[3, 0x01]] {
        assert_eq!(feed(instruction), code::QPACK_DECODER_STREAM_ERROR, "{instruction:?}");
    }
}

#[test]
fn opens_its_own_control_stream_with_the_longest_header_section() {
    assert_eq!(control_stream(), [0, 4, 5, 6, 0x80, 0, 0x40, 0]);
    assert_eq!(goaway(400), [7, 2, 0x41, 0x90]);
    let stream = [control_stream(), goaway(400)].concat();
    assert_eq!(UniStream::default().feed(&mut Session::default(), &stream), Ok(true));
}
