//! The checker of proofs finds each kind of mistake. These tests need no nodes.

use crate::proof::{Proof, Record, ranges};

/// A proof of files, and the procs that are booked as completed and as failed, of `count`.
fn wrong(files: &[(&str, &str)], count: u32, completed: &str, failed: &str) -> Vec<String> {
    let mut proof = Proof::default();
    for (name, text) in files {
        proof.add(name, text);
    }
    let record = Record { count, completed: ranges(completed), failed: ranges(failed) };
    proof.violations(&record, |run| run.pod == "asked")
}

#[test]
fn ranges_are_read() {
    assert_eq!(ranges("0-2,7").into_iter().collect::<Vec<_>>(), [0, 1, 2, 7]);
    assert!(ranges("").is_empty());
}

#[test]
fn a_proc_that_was_evicted_and_ended_later_is_right() {
    let files = [("0.a.node1", "S 1.0 \nB 1.5 \nT 2.0 \nX 2.1 \n"), ("0.b.node2", "S 3.0 \nE 4.0 7\n")];
    assert_eq!(wrong(&files, 1, "", "0"), [] as [String; 0]);
}

#[test]
fn mistakes_are_named() {
    /// The files, the procs that are booked as completed, those booked as failed, and the expected violations.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str, &'a str);
    let cases: &[Case] = &[
        (&[("0.a.n", "S 1 \nT 2 \nX 3 \n")], "0", "", "did not end by itself"),
        (&[("0.a.n", "S 1 \nE 3 7\n")], "0", "", "booked as completed, and ended with 7"),
        (&[("0.a.n", "S 1 \nE 3 0\n")], "", "0", "booked as failed, and ended with 0"),
        (&[("0.a.n", "S 1 \nB 5 \n"), ("0.b.n", "S 4 \nE 6 0\n")], "0", "", "ran twice at once for 1.0 s"),
        (&[("0.a.n", "S 1 \nE 2 0\n"), ("0.b.n", "S 4 \nE 6 0\n")], "0", "", "and it ran again"),
        (&[("0.a.n", "S 1 \nE 2 0\n")], "", "", "is lost"),
        (&[("0.a.n", "S 1 \nE 2 0\n")], "0", "0", "both completed and failed"),
        (&[], "0", "", "never ran"),
        (&[("0.a.n", "S 1 \nE 2 0\nS 3 \nB 4 \n")], "0", "", "did not end by itself in its last run"),
    ];
    for (files, completed, failed, expected) in cases {
        let found = wrong(files, 1, completed, failed);
        assert!(found.iter().any(|text| text.contains(expected)), "{files:?}: {found:?} lacks {expected:?}");
    }
}

#[test]
fn an_early_run_that_outlives_two_later_ones_is_found() {
    let files = [("0.a.n", "S 1 \nB 9 \n"), ("0.b.n", "S 2 \nB 3 \n"), ("0.c.n", "S 5 \nE 6 0\n")];
    assert_eq!(wrong(&files, 1, "0", "").len(), 2);
}

#[test]
fn who_was_asked_to_go_may_repeat() {
    let files = [("0.asked.n", "S 1 \nE 2 0\n"), ("0.b.n", "S 4 \nE 6 0\n")];
    assert_eq!(wrong(&files, 1, "0", ""), [] as [String; 0]);
}

#[test]
fn a_half_written_line_is_left_out() {
    let mut proof = Proof::default();
    proof.add("3.a.node1", "S 1.5 \nB 2");
    let run = proof.only(3);
    assert!(run.last < 2.0, "{run:?}");
}
