use std::fmt::Write;

use proptest::prelude::*;

use super::*;

/// Lines that look like a trace's, and some that do not.
fn line() -> impl Strategy<Value = String> {
    let number =
        prop_oneof!["-1", "[0-9]{1,6}", "[0-9]\\.[0-9]", "-?[0-9]{17,30}", "[1-9]e[0-9]{1,3}", "[a-z]"];
    prop_oneof![
        4 => proptest::collection::vec(number, 16..20).prop_map(|numbers| numbers.join(" ")),
        1 => "; (UnixStartTime|MaxProcs|MaxNodes): .{0,12}",
        4 => "(QDate|RequestCpus|CommittedTime|RequestMemory|Owner|JobStatus|ProcId) = [\"A-Z0-9+()a-z.-]{1,12}",
        1 => "(\\*\\*\\*( EPOCH| Offset = 1)?)?",
        1 => ".{0,40}",
    ]
}

proptest! {
    #[test]
    fn no_text_brings_the_reader_down(text in "(?s).{0,400}") {
        let _ = read(&text);
    }

    #[test]
    fn every_line_of_a_workload_is_a_job_or_skipped(lines in proptest::collection::vec(line(), 1..30)) {
        let text = format!("; Version: 2.2\n{}", lines.join("\n"));
        let trace = read(&text).unwrap();
        let used = text.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with(';')).count();
        let parts = text.lines().filter(|line| {
            let status = line.split_ascii_whitespace().nth(10).and_then(|word| word.parse::<f64>().ok());
            status.is_some_and(|status| (2.0..=4.0).contains(&status.round()))
        });
        // Several lines of runs may make one job.
        prop_assert!(trace.jobs.len() + trace.skipped.len() <= used);
        prop_assert!(trace.jobs.len() + trace.skipped.len() + parts.count() >= used);
        prop_assert!(trace.jobs.is_sorted_by_key(|job| job.submitted));
        prop_assert!(trace.skipped.is_sorted_by_key(|skipped| skipped.line));
        prop_assert!(trace.jobs.first().is_none_or(|job| job.submitted == 0));
        prop_assert!(trace.jobs.iter().all(|job| job.cpus >= 1));
    }

    #[test]
    fn every_ad_of_a_history_is_a_job_or_skipped(ads in proptest::collection::vec(
        proptest::collection::vec("(QDate|RequestCpus|CommittedTime|Owner|ProcId|ClusterId) = [\"A-Z0-9+()a-z.-]{1,9}", 1..8),
        1..8,
    )) {
        let mut text = String::new();
        for ad in &ads {
            writeln!(text, "{}\n", ad.join("\n")).unwrap();
        }
        let trace = read(&text).unwrap();
        prop_assert_eq!(trace.jobs.len() + trace.skipped.len(), ads.len());
        prop_assert!(trace.jobs.is_sorted_by_key(|job| job.submitted));
    }

    #[test]
    fn lines_one_by_one_are_as_the_whole(lines in proptest::collection::vec(line(), 0..20)) {
        let text = lines.join("\n");
        let mut reading = Reading::new();
        let one_by_one = text.lines().try_for_each(|line| reading.line(line)).and_then(|()| reading.finish());
        prop_assert_eq!(one_by_one, read(&text));
    }
}
