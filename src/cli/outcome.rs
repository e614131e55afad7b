//! For tests: runs a command as from the command line.

use std::io::{self, BufRead, Write};

use clap::{Args, Parser};

#[derive(Parser)]
struct Cli<A: Args> {
    #[command(flatten)]
    args: A,
}

/// Runs a command with these arguments and this standard input. Returns the exit status, the standard output and the
/// standard error.
pub fn outcome<A: Args>(
    command: &str,
    args: &[&str],
    input: &str,
    run: impl FnOnce(&A, &mut dyn BufRead, &mut dyn Write, &mut dyn Write) -> io::Result<u8>,
) -> (u8, String, String) {
    let cli = Cli::<A>::parse_from(std::iter::once(&command).chain(args));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = run(&cli.args, &mut input.as_bytes(), &mut out, &mut err).unwrap();
    (status, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}
