//! Unit tests of `frame`.

use super::*;

fn header() -> Header {
    Header {
        kind: kind::SCHED,
        number: 300,
        stream: 5,
        seq: 70,
        payload: 1234,
        events: 500,
        min: 1 << 45,
        max: (1 << 45) + 700_000_000,
        crc: 0xdead_beef,
    }
}

#[test]
fn a_header_comes_back() {
    let mut out = Vec::new();
    header().encode(7, &mut out);
    let len = out.len();
    out.extend_from_slice(b"payload");
    assert_eq!(Header::decode(&out, 7), Ok((header(), len)));
}

#[test]
fn every_flipped_bit_is_found() {
    let mut out = Vec::new();
    header().encode(7, &mut out);
    out.extend_from_slice(&[0; 300]);
    for bit in 0..(out.len() - 300) * 8 {
        let mut bad = out.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(Header::decode(&bad, 7).is_err(), "bit {bit}");
    }
}

#[test]
fn another_traces_header_is_refused() {
    let mut out = Vec::new();
    header().encode(7, &mut out);
    assert!(matches!(
        Header::decode(&out, 8),
        Err(Fault::Checksum { .. })
    ));
}

#[test]
fn the_smallest_header_is_as_short_as_the_limit_says() {
    let mut out = Vec::new();
    Header::default().encode(0, &mut out);
    assert_eq!(out.len() as u64, limits::LEAST_FRAME);
}

#[test]
fn a_cut_header_is_short() {
    let mut out = Vec::new();
    header().encode(7, &mut out);
    for len in 0..out.len() {
        assert!(
            matches!(Header::decode(&out[..len], 7), Err(Fault::Short { .. })),
            "{len}"
        );
    }
}

#[test]
fn more_fields_of_a_later_version_are_skipped() {
    let mut out = Vec::new();
    header().encode(7, &mut out);
    out.truncate(out.len() - 4);
    out.extend_from_slice(b"new");
    out[4] += 3;
    let sum = salted(7, &out);
    out.extend_from_slice(&sum.to_le_bytes());
    assert_eq!(Header::decode(&out, 7), Ok((header(), out.len())));
}

#[test]
fn claims_beyond_the_limits_are_refused() {
    for (events, payload) in [(1 << 60, 5), (5, 1 << 60)] {
        let mut out = Vec::new();
        Header {
            events,
            payload,
            ..header()
        }
        .encode(7, &mut out);
        assert!(matches!(Header::decode(&out, 7), Err(Fault::Limit { .. })));
    }
}
