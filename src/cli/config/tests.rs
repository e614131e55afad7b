//! Runs the commands as from the command line.

use super::*;

fn outcome(args: &[&str], input: &str) -> (u8, String, String) {
    crate::outcome::outcome("config", args, input, run)
}

#[track_caller]
fn prints(args: &[&str], input: &str, expected: &str) {
    assert_eq!(outcome(args, input), (DONE, expected.to_owned(), String::new()));
}

#[test]
fn values_are_printed_a_line_each() {
    prints(&["value", "-f", "-", "A", "b"], "A = $(B)x\nB = 1\n", "1x\n1\n");
    prints(&["value", "-f", "-", "--raw", "A"], "A = $(B)x\n", "$(B)x\n");
    prints(&["value", "SLOT_WEIGHT"], "", "Cpus\n");
    let undefined = outcome(&["value", "-f", "-", "A", "NOPE"], "A = 1\n");
    assert_eq!(undefined, (NO, "1\n".to_owned(), "Not defined: NOPE\n".to_owned()));
}

#[test]
fn daemons_and_slots_see_their_own() {
    let text = "A = 1\nSTARTD.A = 2\nLN.A = 3\nSLOT1_A = 4\n";
    prints(&["value", "-f", "-", "A"], text, "1\n");
    prints(&["value", "-f", "-", "--subsystem", "STARTD", "A"], text, "2\n");
    prints(&["value", "-f", "-", "--local-name", "LN", "A"], text, "3\n");
    prints(&["value", "-f", "-", "--slot", "1", "A"], text, "4\n");
    prints(&["value", "-f", "-", "--slot", "2", "A"], text, "1\n");
}

/// If a value has nothing to expand, `--raw` prints the same for a slot as the expanded value.
#[test]
fn what_a_slot_sees_can_be_told_as_it_is_written() {
    let text = "A = $(B)\nB = b\nSTARTD.A = 2\nLN.A = 3\nLN.LN.A = 4\nSLOT1_A = 5\nSTARTD.SLOT3_A = 6\nSLOT_TYPE_1_A = 7\n\
                NUM_SLOTS_TYPE_1 = 2\nSLOT1_START = no\nSLOT_TYPE_1_START = $(B) > 1\nSTART = true\nSLOT2_C = x\nC = y\n\
                SLOT_TYPE_1_D =\nD = z\n";
    let raw = |more: &[&str], name: &str, text: &str| {
        outcome(&[&["value", "-f", "-", "--raw"], more, &[name]].concat(), text)
    };
    prints(&["value", "-f", "-", "--slot", "1", "--raw", "START"], text, "$(B) > 1\n");
    prints(&["value", "-f", "-", "--slot", "9", "--raw", "A"], text, "$(B)\n");
    prints(&["value", "-f", "-", "--slot", "1", "--raw", "D"], text, "\n");
    let named = "STARTD_RESOURCE_PREFIX = unit\nunit1_A = $(B)\nSLOT1_A = 1\n";
    prints(&["value", "-f", "-", "--slot", "1", "--raw", "A"], named, "$(B)\n");
    assert_eq!(raw(&["--slot", "1"], "NOPE", text).0, NO);
    let plain = text.replace("$(B)", "b");
    for daemon in [&[][..], &["--subsystem", "STARTD"], &["--local-name", "LN"]] {
        for slot in ["1", "2", "3", "9"] {
            for name in ["A", "START", "C", "SLOT_WEIGHT"] {
                let args = [&["value", "-f", "-", "--slot", slot], daemon, &[name]].concat();
                let expanded = outcome(&args, &plain);
                let written = raw(&[&["--slot", slot], daemon].concat(), name, &plain);
                assert_eq!(written, expanded, "{daemon:?}, slot {slot}: {name}");
            }
        }
    }
}

#[test]
fn files_are_read_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = directory.path().join(name).display().to_string();
        fs::write(&path, text).unwrap();
        path
    };
    let (one, two) = (path("one", "A = 1\n"), path("two", "A = $(A)2\n"));
    prints(&["value", "-f", &one, "-f", &two, "A"], "", "12\n");
    let include = format!("include : {one}\n");
    let refused = outcome(&["value", "-f", "-", "A"], &include);
    assert_eq!(refused.0, UNUSABLE);
    assert!(refused.2.contains("line 1, column 1") && refused.2.contains("--allow-files"), "{}", refused.2);
    prints(&["value", "-f", "-", "--allow-files", "A"], &include, "1\n");
    let missing = outcome(&["value", "-f", "/nope/nope", "A"], "");
    assert!(missing.0 == UNUSABLE && missing.2.contains("/nope/nope"), "{}", missing.2);
}

#[test]
fn unusable_input_is_told_with_file_line_and_column() {
    let broken = outcome(&["value", "-f", "-", "A"], "A = 1\nword\nX-Y = 2\n");
    let message = "slotwright config: -, line 2, column 1: expected NAME = value: there is no operator\n";
    assert_eq!(broken, (UNUSABLE, String::new(), message.to_owned()));
    let cycle = outcome(&["value", "-f", "-", "C", "A"], "A = $(B)\nB = $(A)\nC = 1\n");
    assert_eq!((cycle.0, cycle.1.as_str()), (UNUSABLE, "1\n"));
    assert!(cycle.2.contains("A -> B -> A"), "{}", cycle.2);
    let warned = outcome(&["value", "-f", "-", "A"], "A : 1\n");
    assert_eq!((warned.0, warned.1.as_str()), (DONE, "1\n"));
    assert!(warned.2.contains("warning: -, line 1, column 1"), "{}", warned.2);
}

#[test]
fn the_host_is_asked_where_it_is_allowed() {
    let text = "A = $RANDOM_INTEGER(3, 3)\nB = $(DETECTED_CPUS)\n";
    assert_eq!(outcome(&["value", "-f", "-", "A"], text).0, UNUSABLE);
    prints(&["value", "-f", "-", "--seed", "1", "--define", "DETECTED_CPUS=64", "A", "B"], text, "3\n64\n");
    assert_eq!(outcome(&["value", "-f", "-", "A"], "A = $ENV(PATH)\n").0, UNUSABLE);
    assert_eq!(outcome(&["value", "-f", "-", "--allow-env", "A"], "A = $ENV(PATH)\n").0, DONE);
}

#[test]
fn a_dump_has_all_that_is_defined() {
    let text = "B = $(A)\nA = 1\nSTART =\n";
    prints(&["dump", "-f", "-", "--set"], text, "A = 1\nB = $(A)\nSTART = \n");
    prints(&["dump", "-f", "-", "--set", "--expanded"], text, "A = 1\nB = 1\nSTART = \n");
    let (_, all, _) = outcome(&["dump", "-f", "-"], text);
    assert!(all.contains("\nB = $(A)\n") && all.contains("\nSLOT_WEIGHT = Cpus\n"), "{all}");
    assert!(all.contains("\nSTART = \n") && !all.contains("\nSTART = True\n"), "{all}");
}

#[test]
fn a_dump_can_be_read_back() {
    let text = "A @=end\n  x = 1\n\n  # why\n  y @=z\n@end\nB @=other\n@end\n@end_\nif\n@other\nC @=end\none\n@end\n\
                D = # 1\nE =\nuse POLICY : Hold_If_Memory_Exceeded\n";
    for args in [&["dump", "-f", "-", "--set"][..], &["dump", "-f", "-"]] {
        let (status, dumped, _) = outcome(args, text);
        assert_eq!(status, DONE);
        prints(args, &dumped, &dumped);
    }
    let dumped = "A @=end\nx = 1\ny @=z\n@end\nB @=end__\n@end\n@end_\nif\n@end__\nC = one\n";
    let (_, all, _) = outcome(&["dump", "-f", "-", "--set"], text);
    assert!(all.starts_with(dumped), "{all}");
    let last = outcome(&["dump", "-f", "-", "--set"], "B = 1\nA = x\\");
    let message = "slotwright config: warning: A: the value is printed as a comment, because a line of it ends in a \
                   backslash and would take in the next line: end the line otherwise\n";
    assert_eq!(last, (DONE, "# A = x\\\nB = 1\n".to_owned(), message.to_owned()));
}
