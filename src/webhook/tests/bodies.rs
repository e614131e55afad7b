//! Counts what strangers can make the webhook hold.

use super::*;

/// How many bytes all bodies have together.
pub(crate) fn bytes_held(all: &Bodies) -> usize {
    all.held(|held| {
        let counted = held.bodies.values().map(Vec::capacity).sum();
        assert_eq!(held.bytes, counted, "the sum is kept");
        counted
    })
}

fn fill(body: &Reading, bytes: usize) -> Result<(), NotHeld> {
    let chunk = [b' '; 16 << 10];
    let mut left = bytes;
    while left > 0 {
        let part = left.min(chunk.len());
        body.push(&chunk[..part])?;
        left -= part;
    }
    Ok(())
}

#[test]
fn a_body_is_taken_out_whole() {
    let all = Arc::new(Bodies::default());
    let body = all.begin();
    for chunk in [&b"{"[..], b"", b"}"] {
        body.push(chunk).unwrap();
    }
    assert_eq!((body.take(), bytes_held(&all)), (Ok(b"{}".to_vec()), 0));
    assert_eq!(all.begin().take(), Ok(Vec::new()));
}

#[test]
fn strangers_who_send_almost_all_and_wait_fill_no_memory_and_keep_nobody_out() {
    let all = Arc::new(Bodies::default());
    let mut waiting = Vec::new();
    for stranger in 0..256 {
        let body = all.begin();
        assert_eq!(fill(&body, MOST_BYTES - 1), Ok(()), "{stranger}: whoever comes last has room");
        assert!(bytes_held(&all) <= MOST_HELD, "{stranger}: {}", bytes_held(&all));
        waiting.push(body);
    }
    let left = waiting.iter().filter(|body| body.size() > 0).count();
    assert_eq!(left, MOST_HELD / MOST_BYTES, "the newest are held");
    assert_eq!(waiting[0].push(b"x"), Err(NotHeld::LetGo));
    drop(waiting);
    assert_eq!(bytes_held(&all), 0);
}

#[test]
fn a_body_no_larger_than_its_share_is_never_let_go() {
    let all = Arc::new(Bodies::default());
    let old = all.begin();
    fill(&old, SHARE).unwrap();
    let strangers: Vec<Reading> = (2..MOST_CONNECTIONS).map(|_| all.begin()).collect();
    for turn in 0..MOST_BYTES / SHARE {
        for stranger in &strangers {
            let _ = fill(stranger, SHARE);
            assert!(bytes_held(&all) <= MOST_HELD, "{turn}");
        }
    }
    let new = all.begin();
    assert_eq!(fill(&new, SHARE), Ok(()));
    assert_eq!(
        (old.take().map(|body| body.len()), new.take().map(|body| body.len())),
        (Ok(SHARE), Ok(SHARE))
    );
}

#[test]
fn a_body_that_does_not_fit_beside_small_ones_is_let_go_itself() {
    let all = Arc::new(Bodies::default());
    let small: Vec<Reading> = (1..MOST_CONNECTIONS).map(|_| all.begin()).collect();
    for body in &small {
        fill(body, SHARE).unwrap();
    }
    let large = all.begin();
    assert_eq!(fill(&large, SHARE + 1), Err(NotHeld::LetGo));
    assert!(small.into_iter().all(|body| body.take().is_ok()));
}

#[test]
fn a_body_longer_than_a_review_is_refused() {
    let all = Arc::new(Bodies::default());
    let body = all.begin();
    assert_eq!(fill(&body, MOST_BYTES), Ok(()));
    assert_eq!((body.push(b"x"), bytes_held(&all)), (Err(NotHeld::TooLong), 0));
}
