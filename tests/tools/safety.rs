//! No command line makes a tool panic, whatever the words are.

use proptest::prelude::*;
use tools::queue::Source;
use tools::{queue, slots, users};

use super::{ads, screen};

/// Words of command lines: options, expressions, formats, numbers, and what is none of them.
fn word() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "-nobatch",
        "-batch",
        "-run",
        "-hold",
        "-hold:34,1.2",
        "-idle",
        "-totals",
        "-long",
        "-json",
        "-xml",
        "-long:new",
        "-af",
        "-af:jh",
        "-af:lrng",
        "-af:V,",
        "-aaf",
        "-format",
        "%d\\n",
        "%-9.3s|",
        "%v",
        "%T",
        "%Y",
        "%%",
        "%5.2f",
        "%x",
        "-constraint",
        "-sort",
        "-limit",
        "-wide",
        "-wide:1",
        "-wide:60",
        "-attributes",
        "-compact",
        "-claimed",
        "-avail",
        "-state",
        "-server",
        "-submitters",
        "-schedd",
        "-allusers",
        "-all",
        "-usage",
        "-cputime",
        "-hold-codes",
        "-",
        "12",
        "12.3",
        "ada",
        "3",
        "0",
        "99999999999999999999",
        "JobStatus == 5",
        "Owner",
        "ClusterId",
        "Missing",
        "List",
        "1 +",
        "Name,Cpus",
        "-9223372036854775808",
        "é",
        "",
    ]);
    prop_oneof![9 => known.prop_map(str::to_owned), 1 => "\\PC{0,12}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_command_line_panics(words in prop::collection::vec(word(), 0..6)) {
        let (jobs, machines) = (ads("jobs.ads"), ads("slots.ads"));
        if let Ok(queue::Asked::Jobs(request)) = queue::parse(&words) {
            request.print(&jobs, &Source::default(), &screen());
        }
        if let Ok(slots::Asked::Ads(request)) = slots::parse(&words) {
            request.print(&machines, &screen());
        }
        if let Ok(users::Asked::Users(request)) = users::parse(&words) {
            request.print(&machines, &screen());
        }
    }
}
