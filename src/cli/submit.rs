//! `slotwright submit`: the HTCJobs or the ads that a submit file makes, without a cluster.

use std::io::{self, BufRead, Write};

use plugin::submit::{Error, Place, prepare};

use crate::stop::{DONE, UNUSABLE};

pub use plugin::submit::SubmitArgs;

/// Runs the command. Returns the exit status: 0 done, 2 unusable input, which `stderr` explains with file, line and column.
/// Fails if the output cannot be written.
pub fn run(
    args: SubmitArgs,
    stdin: &mut dyn BufRead,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> io::Result<u8> {
    match prepare(&args.request().offline(), &Place::here()?, stdin, stdout, stderr) {
        Ok(_) => Ok(DONE),
        Err(Error::Output(error)) => Err(error),
        Err(error) => writeln!(stderr, "slotwright submit: {error}").map(|()| UNUSABLE),
    }
}
