//! `slotwright submit`: the HTCJobs or the ads that a submit file makes, without a cluster.

use std::io::{self, Read, Write};

use plugin::submit::{Error, Place, prepare};

use crate::stop::{DONE, UNUSABLE};

pub use plugin::submit::SubmitArgs;

/// Runs the command. Returns the exit status: 0 done, 2 unusable input, which `stderr` explains with file, line and column.
/// Fails if the output cannot be written.
pub fn run(
    args: SubmitArgs,
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> io::Result<u8> {
    match prepare(&args.request().offline(), &Place::here()?, stdin, stdout, stderr) {
        Ok(_) => Ok(DONE),
        Err(Error::Output(error)) => Err(error),
        Err(error) => writeln!(stderr, "slotwright submit: {error}").map(|()| UNUSABLE),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};
    use classad::{Ad, Env, Value};

    use super::*;
    use crate::transform;

    /// The ads that the operator makes of the HTCJobs of a submit file.
    fn ads(text: &str) -> Vec<Ad> {
        let words = SubmitArgs::augment_args(Command::new("submit")).get_matches_from(["submit", "-"]);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let status =
            run(SubmitArgs::from_arg_matches(&words).unwrap(), &mut text.as_bytes(), &mut out, &mut err);
        assert_eq!((status.unwrap(), String::from_utf8(err).unwrap()), (DONE, String::new()));
        let manifests = serde_json::Deserializer::from_slice(&out).into_iter::<serde_json::Value>();
        manifests.map(|manifest| ad(&manifest.unwrap())).collect()
    }

    /// The ads are HTCondor's. Beside them stands what a submission would say.
    #[test]
    fn printed_ads_come_with_what_a_submission_would_refuse() {
        let text = "executable = /bin/true\ntransfer_executable = false\nnoop_job = true\nqueue\n";
        let words = SubmitArgs::augment_args(Command::new("submit"));
        let words = words.get_matches_from(["submit", "--dry-run=ads", "-"]);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let args = SubmitArgs::from_arg_matches(&words).unwrap();
        assert_eq!(run(args, &mut text.as_bytes(), &mut out, &mut err).unwrap(), DONE);
        let (out, err) = (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap());
        assert!(out.contains("Cmd=\"/bin/true\""), "{out}");
        Ad::parse_long(out.trim_end()).expect("standard output has ads alone");
        assert!(err.ends_with("Dry-Run job(s).\n1 job(s) dry-run to cluster 1.\n"), "{err}");
        assert!(err.contains("noop_job: ") && err.contains("(a submission would be refused)"), "{err}");
    }

    /// `slotwright lint` says the same of the HTCJob, with a field that no submit file has.
    #[test]
    fn a_submission_tells_what_the_operator_would_warn_of() {
        let text = "executable = /bin/true\ntransfer_executable = false\ncontainer_image = docker://debian\n\
                    requirements = TARGET.Memroy > 100\n+KillSig = \"SIGUSR1\"\n+MaxRetries = 3\n\
                    periodic_hold = size()\nqueue request_cpus in (1 2)\n";
        let words = SubmitArgs::augment_args(Command::new("submit")).get_matches_from(["submit", "-"]);
        let args = SubmitArgs::from_arg_matches(&words).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        assert_eq!(run(args, &mut text.as_bytes(), &mut out, &mut err).unwrap(), DONE);
        let err = String::from_utf8(err).unwrap();
        let lines: Vec<&str> = err.lines().collect();
        for (line, begin) in lines.iter().zip([
            "WARNING: stdin, line 4, column 16: requirements: no machine has the attribute Memroy",
            "WARNING: stdin, line 5, column 12: +KillSig: ",
            "WARNING: stdin, line 6, column 15: MY.MaxRetries: nothing acts on it",
            "WARNING: stdin, line 7, column 17: periodic_hold: calls size() with 0 arguments",
        ]) {
            assert!(line.starts_with(begin), "{line}");
        }
        assert_eq!(lines.len(), 4, "{err}");
    }

    fn ad(manifest: &serde_json::Value) -> Ad {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        std::fs::write(path("rules"), "").unwrap();
        std::fs::write(path("job.json"), manifest.to_string()).unwrap();
        let args = ["--rules", &path("rules"), &path("job.json")];
        let (status, out, err) = crate::outcome::outcome("transform", &args, "", transform::run);
        assert_eq!((status, err), (DONE, String::new()), "{manifest}");
        Ad::parse_long(&out).unwrap()
    }

    /// A submit file writes the old syntax of ClassAds, in which a backslash in a string stands for itself.
    #[test]
    fn a_backslash_in_an_expression_of_a_submit_file_reaches_the_job() {
        let file = r#"
            executable = /bin/true
            transfer_executable = false
            container_image = docker://debian
            requirements = regexp("^node-?\d+$", TARGET.Machine) && TARGET.Share =!= "\\$(name)\$(Process)"
            rank = regexp("^node-\d$", TARGET.Machine) ? 1 : 2
            request_gpus = 1
            require_gpus = regexp("^A\d+$", DeviceName)
            concurrency_limits_expr = regexps("^(\w+)-", TARGET.Machine, "\1")
            periodic_hold = regexp("\bto+\.$(name)\b", "x too.$(name) y")
            periodic_hold_reason = "see C:\new\tmp"
            on_exit_remove = regexp("^\s+$", " ")
            max_retries = 3
            leave_in_queue = regexp("\d", "d")
            description = of C:\$(name)\new
            +Dir = "C:\dir\"
            +Own = "\$(name)\$(Process)\"
            MY.Quoted = "a\"b\d\""
            transform_body_More = SET Note "\d"
            on_evict_checks = More
            queue name in (one, two)
        "#;
        let ads = ads(&file.lines().map(str::trim).collect::<Vec<_>>().join("\n"));
        assert_eq!(ads.len(), 2);
        let env = Env::at(0);
        let machine = |name: &str| {
            let more = r#"Cpus = 9; Memory = 9999; Disk = 99999999; GPUs = 1; AvailableGPUs = { [ DeviceName = "A100" ] }"#;
            Ad::parse_new(&format!("[ Machine = \"{name}\"; {more} ]")).unwrap()
        };
        for (number, (name, ad)) in ["one", "two"].into_iter().zip(&ads).enumerate() {
            for (attribute, node, expected) in [
                ("Requirements", "node-12", Value::Bool(true)),
                ("Requirements", "node-x", Value::Bool(false)),
                ("Requirements", "node-ddd", Value::Bool(false)),
                ("Rank", "node-1", Value::Int(1)),
                ("Rank", "node-d", Value::Int(2)),
                ("ConcurrencyLimits", "node-1", "node".into()),
                ("PeriodicHold", "", Value::Bool(true)),
                ("PeriodicHoldReason", "", r"see C:\new\tmp".into()),
                ("OnExitRemove", "", Value::Bool(true)),
                ("LeaveJobInQueue", "", Value::Bool(false)),
                ("JobDescription", "", format!(r"of C:\{name}\new").as_str().into()),
                ("Dir", "", r"C:\dir\".into()),
                ("Own", "", format!(r"\{name}\{number}\").as_str().into()),
                ("Quoted", "", r#"a"b\d""#.into()),
                ("TransformBody_More", "", r#"SET Note "\d""#.into()),
            ] {
                let found = ad.eval_attr(attribute, Some(&machine(node)), &env);
                assert_eq!(found, expected, "{attribute} of {number} on {node}: {:?}", ad.get(attribute));
            }
        }
    }
}
