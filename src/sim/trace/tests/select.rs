use super::*;

/// A trace of jobs submitted at these times; the first is user0's, the second user1's, and so on.
fn at(times: &[u64]) -> Trace {
    let lines: Vec<String> = times
        .iter()
        .enumerate()
        .map(|(user, time)| format!("{user} {time} 5 60 4 -1 -1 4 -1 -1 1 {user} 2 -1 1 -1 -1 -1\n"))
        .collect();
    trace(&format!("; UnixStartTime: 1000\n{}", lines.concat()))
}

fn selected(times: &[u64], selection: &Selection) -> (Option<i64>, Vec<(u64, String)>) {
    let trace = at(times).select(selection).unwrap();
    (trace.began, trace.jobs.iter().map(|job| (job.submitted, job.owner.to_string())).collect())
}

#[test]
fn by_default_all_is_taken_as_it_was() {
    let trace = at(&[0, 60, 3600]);
    assert_eq!(trace.clone().select(&Selection::default()).unwrap(), trace);
}

#[test]
fn a_window_is_taken_and_counts_from_its_start() {
    let selection = Selection { window: 50..3600, ..Selection::default() };
    assert_eq!(
        selected(&[0, 60, 3599, 3600], &selection),
        (Some(1050), vec![(10, "user1".to_owned()), (3549, "user2".to_owned())])
    );
}

#[test]
fn a_pace_brings_jobs_sooner_or_later() {
    for (pace, times) in [(0.5, [0, 30]), (2.0, [0, 120]), (0.001, [0, 0])] {
        let selection = Selection { pace, ..Selection::default() };
        let submitted: Vec<u64> =
            selected(&[0, 60], &selection).1.into_iter().map(|(time, _)| time).collect();
        assert_eq!(submitted, times, "{pace}");
    }
}

#[test]
fn the_first_jobs_are_taken() {
    assert_eq!(selected(&[0, 1, 2], &Selection { jobs: 2, ..Selection::default() }).1.len(), 2);
}

#[test]
fn others_stand_in_for_the_people_of_the_trace() {
    let person = |owner: Option<&str>, group: Option<&str>| Person {
        owner: owner.map(str::to_owned),
        group: group.map(str::to_owned),
    };
    let named = [
        ("user0".to_owned(), person(Some("ann"), None)),
        ("user1".to_owned(), person(None, Some("physics"))),
    ];
    let mut selection = Selection { people: named.into(), ..Selection::default() };
    let who = |selection: &Selection| -> Vec<String> {
        let trace = at(&[0, 1, 2]).select(selection).unwrap();
        trace
            .jobs
            .iter()
            .map(|job| format!("{} of {}", job.owner, job.group.as_deref().unwrap_or("none")))
            .collect()
    };
    assert_eq!(who(&selection), ["ann of group2", "user1 of physics", "user2 of group2"]);
    selection.people.insert("*".to_owned(), person(Some("eve"), Some("misc")));
    assert_eq!(who(&selection), ["ann of group2", "user1 of physics", "eve of misc"]);
    selection.people.insert("*".to_owned(), person(None, Some("")));
    assert_eq!(who(&selection), ["ann of group2", "user1 of physics", "user2 of none"]);
}

#[test]
#[allow(clippy::reversed_empty_ranges, reason = "that is the point")]
fn a_selection_that_makes_no_sense_is_refused() {
    for (selection, message) in [
        (
            Selection { window: 5..5, ..Selection::default() },
            "the window ends, at 5 s, where it starts, at 5 s, or before",
        ),
        (
            Selection { window: 9..5, ..Selection::default() },
            "the window ends, at 5 s, where it starts, at 9 s, or before",
        ),
        (
            Selection { pace: 0.0, ..Selection::default() },
            "the pace is 0: it must be more than 0 and at most 1000000",
        ),
        (
            Selection { pace: f64::NAN, ..Selection::default() },
            "the pace is NaN: it must be more than 0 and at most 1000000",
        ),
    ] {
        assert_eq!(at(&[0]).select(&selection).unwrap_err().to_string(), message);
    }
}
