//! Reads any bytes as a history file, in both directions. Both readings must end, not panic, and find the same ads. The result of a
//! search must not depend on the bytes behind the last banner.

use std::io::Cursor;

use history::{Direction, Record, Records, Search};

fn read(bytes: &[u8], direction: Direction) -> Vec<Record> {
    let Ok(mut records) = Records::of(Cursor::new(bytes), direction) else { return Vec::new() };
    std::iter::from_fn(|| records.next_record().ok().flatten()).collect()
}

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let mut whole = bytes.to_vec();
    whole.extend_from_slice(b"\n*** ClusterId = 1 ProcId = 0\n");
    let mut back = read(&whole, Direction::Backwards);
    back.reverse();
    assert_eq!(back, read(&whole, Direction::Forwards));
    for record in &back {
        let _ = (record.ad(), record.is_whole());
    }
    let search = Search { owners: vec!["ada".to_owned()], ..Search::default() };
    let found = |bytes: &[u8]| {
        let mut count = 0;
        if let Ok(records) = Records::of(Cursor::new(bytes), Direction::Backwards) {
            let _ = search.begin(0).read(records, |_| count += 1);
        }
        count
    };
    let before = found(&whole);
    whole.extend_from_slice(b"Owner = \"ada\"\nClusterId = ");
    assert_eq!(found(&whole), before);
}
