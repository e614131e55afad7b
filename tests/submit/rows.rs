//! Rows of items, and what procs have whose rows leave something empty.

use condor_config::{Host, Source};
use submit::{Options, Submission, World, submit};

const HEAD: &str = "executable = /bin/echo\ntransfer_executable = false\n";

/// A submit file that ends with these lines, beside a file `list.txt`.
fn submitted(lines: &str, list: &str) -> Submission {
    let files = |_: &str| Ok(list.to_owned());
    let world = World { files: Some(&files), host: Host::none(), ..World::none() };
    submit(&Source::new("lines.sub", format!("{HEAD}{lines}")), &Options::default(), &world)
}

/// An attribute of each proc, as its own ad or the cluster's has it.
fn each(submission: &Submission, attribute: &str) -> Vec<String> {
    let cluster = submission.cluster.as_ref().unwrap();
    let of = |proc: &submit::Proc| {
        proc.ad.get(attribute).or_else(|| cluster.ad.get(attribute)).map(classad::Expr::to_old)
    };
    cluster.procs.iter().map(|proc| of(proc).unwrap_or_default()).collect()
}

fn said(submission: &Submission) -> Vec<String> {
    submission.findings.iter().map(ToString::to_string).collect()
}

/// condor_submit 25.14.1 gives each of these answers.
#[test]
fn an_empty_row_has_the_values_of_the_row_before() {
    for (statement, list, expected) in [
        ("queue x,y from list.txt", "a x\n\nb y\n\n", &["za-x", "za-x", "zb-y", "zb-y"] as &[&str]),
        ("queue x,y from list.txt", "\n\na x\n", &["z-", "z-", "za-x"]),
        ("queue x,y from (\na x\n   \nb y\n)", "", &["za-x", "za-x", "zb-y"]),
        ("queue from table list.txt", "x,y\na,b\n\nc,d\n , \ne,f\n", &["za-b", "za-b", "zc-d", "z-", "ze-f"]),
        ("queue 2 x,y from list.txt", "a x\n\n", &["za-x"; 4]),
    ] {
        let submission = submitted(&format!("arguments = z$(x)-$(y)\n{statement}\n"), list);
        let expected: Vec<String> = expected.iter().map(|text| format!("\"{text}\"")).collect();
        assert_eq!(each(&submission, "Args"), expected, "{statement}: {list:?}");
    }
}

#[test]
fn an_empty_row_is_told_of_with_its_line() {
    for (statement, list, expected) in [
        (
            "queue x from list.txt",
            "a\nb\n\n".to_owned(),
            &[
                "queue: line 3 of list.txt is empty, and makes a proc with the values of the row before, as in HTCondor: delete the line",
            ] as &[&str],
        ),
        (
            "queue x from list.txt",
            "\na\n\nb \\\n c\n\n".to_owned(),
            &[
                "queue: line 1 of list.txt is empty, and makes a proc with empty values, as in HTCondor: delete the line",
                "queue: lines 3, 6 of list.txt are empty, and each makes a proc with the values of the row before, as in HTCondor: \
                 delete the lines",
            ],
        ),
        (
            "queue x from list.txt",
            format!("a\n{}", "\n".repeat(12)),
            &[
                "queue: lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more of list.txt are empty, and each makes a proc with the values of \
               the row before, as in HTCondor: delete the lines",
            ],
        ),
        (
            "queue x from (\na\n\n)",
            String::new(),
            &[
                "queue: line 6 is empty, and makes a proc with the values of the row before, as in HTCondor: delete the line",
            ],
        ),
        ("queue x from [:1] list.txt", "a\n\n".to_owned(), &[]),
        ("SubmitWarnEmptyFields = false\nqueue x from list.txt", "a\n\n".to_owned(), &[]),
        ("queue x from list.txt", "a\nb\n".to_owned(), &[]),
    ] {
        let submission = submitted(&format!("arguments = $(x)\n{statement}\n"), &list);
        let found = said(&submission);
        assert_eq!(found.len(), expected.len(), "{statement}: {list:?}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with("warning: lines.sub, line") && found.ends_with(expected), "{found}");
        }
    }
}

#[test]
fn a_proc_that_has_the_arguments_of_the_first_is_told_of() {
    for (lines, expected) in [
        (
            "arguments = $(x)\nqueue x,y from (\na 1\n,2\n,3\n)\n",
            &[
                "line 3, column 13: arguments: is empty in row 2, so that the proc has those of the first, as in HTCondor: put the value \
               into double quotes to have none, as in arguments = \"$(x)\"",
            ] as &[&str],
        ),
        (
            "env = $(x)\nqueue x,y from (\nA=1 1\n,2\n)\n",
            &[
                "line 3, column 7: env: is empty in row 2, so that the proc has that of the first, as in HTCondor: give each variable a \
               value in every row",
            ],
        ),
        ("arguments = $(x)\nqueue x,y from (\n,1\nb,2\n,3\n)\n", &[]),
        ("arguments = \"$(x)\"\nqueue x,y from (\na 1\n,2\n)\n", &[]),
        ("arguments = a\nqueue 3\n", &[]),
    ] {
        let found = said(&submitted(lines, ""));
        let found: Vec<&String> =
            found.iter().filter(|said| !said.contains("the variable y is not used")).collect();
        assert_eq!(found.len(), expected.len(), "{lines}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with("warning: lines.sub, ") && found.ends_with(expected), "{found}");
        }
    }
}
