//! Runs HTCondor's library in a process of its own, and asks it over a pipe.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::Answer;
use crate::ours::What;
use crate::workload::{Attributes, line};

/// The process of `benches/libclassad/run.sh`.
pub struct Condor {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Microseconds to parse and to optimize a machine's ad.
    pub costs: [f64; 2],
    _files: tempfile::TempDir,
}

impl Condor {
    /// Compiles and starts the process. Returns `None` if the library is not installed, with a message on standard error.
    pub fn start(slots: &[Attributes], jobs: &[Attributes]) -> Option<Self> {
        let files = tempfile::tempdir().unwrap();
        let write = |name: &str, ads: &[Attributes]| {
            let path = files.path().join(name);
            fs::write(&path, ads.iter().map(|ad| line(ad) + "\n").collect::<String>()).unwrap();
            path
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/libclassad/run.sh");
        let mut child = Command::new(script)
            .args([write("slots.ads", slots), write("jobs.ads", jobs)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        answers.read_line(&mut ready).unwrap();
        let words: Vec<&str> = ready.split_whitespace().collect();
        let ["ready", parsing, optimizing] = words.as_slice() else {
            eprintln!("HTCondor's library does not take part: {}", child.wait().unwrap());
            return None;
        };
        let costs = [parsing, optimizing].map(|word| word.parse().unwrap());
        Some(Self { questions: child.stdin.take(), child, answers, costs, _files: files })
    }

    /// Matches a job with all slots.
    pub fn ask(&mut self, how: &str, what: What, job: usize) -> Answer {
        let what = if what == What::Ranks { "ranks" } else { "match" };
        writeln!(self.questions.as_ref().unwrap(), "{how} {what} {job}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        let words: Vec<&str> = answer.split_whitespace().collect();
        let [seconds, matches, sum] = words.as_slice() else { panic!("it answered {answer:?}") };
        Answer {
            seconds: seconds.parse().unwrap(),
            matches: matches.parse().unwrap(),
            sum: sum.parse().unwrap(),
        }
    }
}

impl Drop for Condor {
    fn drop(&mut self) {
        drop(self.questions.take());
        // The process ends when its standard input does.
        let _ = self.child.wait();
    }
}
