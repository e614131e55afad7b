//! Load average, CPUs, free swap and scratch space, and pressure of the whole node.
//!
//! `/proc/loadavg`, `/proc/stat`, `/proc/meminfo` and `/proc/pressure` show the whole node in every container.

use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;

use crate::named::named;

/// The load in `/proc/loadavg`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadAverage {
    /// The load average over the last minute, in threads: TotalLoadAvg. Finite and not negative.
    pub minute: f64,
    /// How many threads run, or wait for a CPU, at this moment.
    pub running: u64,
}

/// The part of the last ten seconds, in percent, in which at least one thread waited for a resource. A field is `None` if the
/// kernel does not measure pressure.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pressure {
    /// Threads waited for a CPU.
    pub cpu: Option<f64>,
    /// Threads waited for memory.
    pub memory: Option<f64>,
    /// Threads waited for a disk.
    pub io: Option<f64>,
}

/// Returns the node's load average. `proc` is the node's `/proc`.
pub fn load_average(proc: &Path) -> io::Result<LoadAverage> {
    read(&proc.join("loadavg"), "a load average and RUNNING/THREADS", parse_load_average)
}

/// Returns how many CPUs of the node are online, whatever the agent's own limits are.
pub fn cpus(proc: &Path) -> io::Result<NonZeroU32> {
    read(&proc.join("stat"), "a line for each CPU", parse_cpus)
}

/// Returns the free swap space in KiB: VirtualMemory.
pub fn free_swap_kib(proc: &Path) -> io::Result<u64> {
    read(&proc.join("meminfo"), "a line SwapFree", parse_free_swap)
}

/// Returns the KiB that programs without privileges can still write into `directory`: Disk, before RESERVED_DISK is taken off.
pub fn free_scratch_kib(directory: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(directory).map_err(|error| named(directory, &error.into()))?;
    // Both factors may be large: blocks of 1 GiB exist.
    let bytes = u128::from(found.f_bavail) * u128::from(found.f_frsize);
    Ok(u64::try_from(bytes / 1024).unwrap_or(u64::MAX))
}

/// Returns the node's pressure.
pub fn pressure(proc: &Path) -> Pressure {
    // Without the file, or with one that fails (`psi=0` makes reads fail), the kernel does not measure.
    let of = |resource: &str| {
        let text = fs::read_to_string(proc.join("pressure").join(resource)).ok()?;
        parse_pressure(&text)
    };
    Pressure { cpu: of("cpu"), memory: of("memory"), io: of("io") }
}

fn read<T>(path: &Path, expected: &str, parse: impl Fn(&str) -> Option<T>) -> io::Result<T> {
    let text = fs::read_to_string(path).map_err(|error| named(path, &error))?;
    parse(&text).ok_or_else(|| {
        let message = format!("{}: {expected} was expected", path.display());
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

fn measure(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
}

/// Reads `MINUTE FIVE FIFTEEN RUNNING/THREADS LASTPID`.
fn parse_load_average(text: &str) -> Option<LoadAverage> {
    let mut words = text.split_ascii_whitespace();
    let minute = measure(words.next()?)?;
    let (running, _) = words.nth(2)?.split_once('/')?;
    Some(LoadAverage { minute, running: running.parse().ok()? })
}

/// Counts the lines `cpuN ...`; the line `cpu ...` is their sum.
fn parse_cpus(text: &str) -> Option<NonZeroU32> {
    let numbered = |line: &&str| {
        let word = line.split(' ').next().and_then(|word| word.strip_prefix("cpu"));
        word.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    NonZeroU32::new(u32::try_from(text.lines().filter(numbered).count()).ok()?)
}

fn parse_free_swap(text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix("SwapFree:"))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Reads the `avg10` of the line `some avg10=N avg60=N avg300=N total=N`.
fn parse_pressure(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    measure(some.split(' ').find_map(|word| word.strip_prefix("avg10="))?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn load_averages_are_read() {
        let load = |minute, running| Some(LoadAverage { minute, running });
        for (text, expected) in [
            ("0.20 0.18 0.12 1/80 11206\n", load(0.2, 1)),
            ("112.05 80.00 3.12 130/2048 4194303\n", load(112.05, 130)),
            ("nan 0.18 0.12 1/80 11206\n", None),
            ("-1 0.18 0.12 1/80 11206\n", None),
            ("0.20 0.18 0.12 80 11206\n", None),
            ("0.20\n", None),
            ("", None),
        ] {
            assert_eq!(parse_load_average(text), expected, "{text:?}");
        }
    }

    #[test]
    fn cpus_swap_and_pressure_are_read() {
        let stat = "cpu  10 0 10 10\ncpu0 5 0 5 5\ncpu2 5 0 5 5\nintr 5 0\nctxt 1990473\n";
        assert_eq!(parse_cpus(stat), NonZeroU32::new(2), "a CPU that is offline has no line");
        assert_eq!(parse_cpus("cpu  10 0 10 10\n"), None);
        let meminfo = "MemTotal:       16316412 kB\nSwapCached:            0 kB\nSwapTotal:       2097148 kB\n\
                       SwapFree:        2097000 kB\n";
        assert_eq!(parse_free_swap(meminfo), Some(2_097_000));
        assert_eq!(parse_free_swap("MemTotal:       16316412 kB\n"), None);
        let pressure = "some avg10=1.53 avg60=0.87 avg300=0.73 total=69286187\nfull avg10=9.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(parse_pressure(pressure), Some(1.53));
        assert_eq!(parse_pressure("full avg10=9.00 avg60=0.00 avg300=0.00 total=0\n"), None);
    }

    #[test]
    fn this_computer_is_read() {
        let proc = Path::new("/proc");
        assert!(load_average(proc).unwrap().running >= 1, "this test runs");
        assert!(cpus(proc).unwrap().get() >= 1);
        free_swap_kib(proc).unwrap();
        let directory = tempfile::tempdir().unwrap();
        assert!(free_scratch_kib(directory.path()).unwrap() > 0);
        let waits = pressure(proc);
        let percent = [waits.cpu, waits.memory, waits.io].into_iter().flatten();
        assert!(percent.into_iter().all(|value| value <= 100.0), "{waits:?}");
    }

    #[test]
    fn an_error_names_the_file_and_what_was_expected() {
        let proc = tempfile::tempdir().unwrap();
        assert!(load_average(proc.path()).unwrap_err().to_string().contains("loadavg"));
        fs::write(proc.path().join("meminfo"), "").unwrap();
        let error = free_swap_kib(proc.path()).unwrap_err().to_string();
        assert!(error.ends_with("meminfo: a line SwapFree was expected"), "{error}");
        assert_eq!(pressure(proc.path()), Pressure::default());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s)((cpu|some |avg10=|SwapFree:|[0-9./ \n]{0,9}|kB|.){0,20})") {
            parse_load_average(&text);
            parse_cpus(&text);
            parse_free_swap(&text);
            parse_pressure(&text);
        }
    }
}
