//! The formats of the kernel's files in cgroups. Text that does not follow its format counts as absent.
//!
//! Source: the kernel's documentation, `admin-guide/cgroup-v2.rst` and `admin-guide/cgroup-v1/`.

use std::collections::BTreeSet;

/// The value of a file that holds one number, such as `memory.current`.
pub(super) fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The value of `key` in a file with a line `KEY NUMBER` for each key, such as `cgroup.events` or `memory.stat`.
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(' ')?;
        (found == key).then(|| number(value)).flatten()
    })
}

/// The state that `freezer.state` tells (version 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freezer {
    Thawed,
    Freezing,
    Frozen,
}

/// Reads `freezer.state`.
pub(super) fn freezer(text: &str) -> Option<Freezer> {
    match text.trim() {
        "THAWED" => Some(Freezer::Thawed),
        "FREEZING" => Some(Freezer::Freezing),
        "FROZEN" => Some(Freezer::Frozen),
        _ => None,
    }
}

/// The process ids in `cgroup.procs`. The kernel writes 0 for a process outside of the reader's PID namespace (version 2).
pub(super) fn processes(text: &str) -> BTreeSet<i32> {
    text.lines().filter_map(|line| line.trim().parse().ok()).filter(|pid| *pid >= 0).collect()
}

/// The amounts read and written over all devices: bytes, or operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Transferred {
    pub(super) read: u64,
    pub(super) written: u64,
}

impl Transferred {
    /// The sum of both, field by field.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            read: self.read.saturating_add(other.read),
            written: self.written.saturating_add(other.written),
        }
    }
}

/// Reads the bytes of `io.stat` (version 2): a line `MAJOR:MINOR rbytes=N wbytes=N rios=N wios=N ...` for each device.
pub(super) fn io_stat_bytes(text: &str) -> Transferred {
    io_stat(text, "rbytes", "wbytes")
}

/// Reads the operations of `io.stat`.
pub(super) fn io_stat_operations(text: &str) -> Transferred {
    io_stat(text, "rios", "wios")
}

fn io_stat(text: &str, read: &str, write: &str) -> Transferred {
    let pairs = text.split_ascii_whitespace().filter_map(|word| word.split_once('='));
    pairs.fold(Transferred::default(), |sum, (key, value)| sum.plus(transferred(key, value, read, write)))
}

/// Reads `blkio.throttle.io_service_bytes` or `blkio.throttle.io_serviced` (version 1): lines `MAJOR:MINOR OPERATION N`, and a
/// line `Total N`. The first file counts bytes, the second one operations. None if no device is counted: since Linux 6.10 the
/// kernel counts only where a limit is set, and says `Total 0` otherwise.
pub(super) fn blkio(text: &str) -> Option<Transferred> {
    let counted = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        Some(transferred(words.next()?, words.next()?, "Read", "Write"))
    });
    counted.reduce(Transferred::plus)
}

fn transferred(key: &str, value: &str, read: &str, write: &str) -> Transferred {
    let value = number(value).unwrap_or(0);
    Transferred { read: if key == read { value } else { 0 }, written: if key == write { value } else { 0 } }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_with_keys_are_read_by_key() {
        let events = "populated 1\nfrozen 0\n";
        let cpu = "usage_usec 181046217\nuser_usec 120019263\nsystem_usec 61026954\nnice_usec 0\n\
                   core_sched.force_idle_usec 0\n";
        let memory =
            "anon 151552\nfile 3940352\nkernel 278528\ninactive_anon 126976\ninactive_file 2494464\n";
        for (text, key, expected) in [
            (events, "populated", Some(1)),
            (events, "frozen", Some(0)),
            (events, "froze", None),
            (cpu, "usage_usec", Some(181_046_217)),
            (memory, "inactive_file", Some(2_494_464)),
            (memory, "file", Some(3_940_352)),
            ("", "anon", None),
            ("anon\n", "anon", None),
            ("anon max\n", "anon", None),
            ("anon 18446744073709551616\n", "anon", None),
        ] {
            assert_eq!(keyed(text, key), expected, "{key} in {text:?}");
        }
    }

    #[test]
    fn numbers_states_and_processes_are_read() {
        assert_eq!(
            [number("4096\n"), number("max\n"), number("-1\n"), number("")],
            [Some(4096), None, None, None]
        );
        assert_eq!(
            ["THAWED\n", "FREEZING\n", "FROZEN\n", "frozen\n"].map(freezer),
            [Some(Freezer::Thawed), Some(Freezer::Freezing), Some(Freezer::Frozen), None]
        );
        assert_eq!(processes("17\n4\n0\n17\nx\n-3\n"), [0, 4, 17].into());
    }

    #[test]
    fn transferred_bytes_are_summed_over_devices() {
        let v2 = "8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n\
                  8:0 rbytes=90430464 wbytes=299008000 rios=8950 wios=1252 dbytes=50331648 dios=3021\n";
        assert_eq!(io_stat_bytes(v2), Transferred { read: 91_889_664, written: 613_781_504 });
        assert_eq!(io_stat_operations(v2), Transferred { read: 9142, written: 1605 });
        let v1 = "254:0 Read 4096\n254:0 Write 8192\n254:0 Sync 0\n254:0 Async 12288\n254:0 Discard 0\n254:0 Total 12288\n\
                  7:0 Read 1\n7:0 Write 2\nTotal 12291\n";
        assert_eq!(blkio(v1), Some(Transferred { read: 4097, written: 8194 }));
        assert_eq!(blkio("Total 0\n"), None, "nothing is counted");
        let idle = "8:0 Read 0\n8:0 Write 0\nTotal 0\n";
        assert_eq!(blkio(idle), Some(Transferred::default()));
        assert_eq!(
            io_stat_bytes("8:0 \n"),
            Transferred::default(),
            "a device without a transfer has no numbers"
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s)([a-z_:=]{0,6}[ \n]?(-?[0-9]{0,22})[ \n=]?|.){0,20}", key in "[a-z_]{0,4}") {
            number(&text);
            keyed(&text, &key);
            freezer(&text);
            processes(&text);
            io_stat_bytes(&text);
            io_stat_operations(&text);
            blkio(&text);
        }
    }
}
