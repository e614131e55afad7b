//! The usage of a pod: CPU, memory and disks.

use std::path::Path;
use std::time::Duration;

use super::files;
use super::parse::{self, Transferred};

/// The usage of a pod, all its containers together. A field is `None` if the node does not measure it, and all are `None` if the
/// cgroup has vanished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// CPU time since the pod started.
    pub cpu: Option<Duration>,
    /// Memory in use in bytes, without file pages that the kernel may drop at once: the kubelet's working set.
    pub memory_bytes: Option<u64>,
    /// Memory in bytes that belongs to no file: HTCondor's ResidentSetSize, without shared libraries.
    pub rss_bytes: Option<u64>,
    /// Bytes read from disks since the pod started. Pages that the kernel still had in memory do not count.
    pub read_bytes: Option<u64>,
    /// Bytes written to disks since the pod started.
    pub written_bytes: Option<u64>,
    /// How many operations read from disks since the pod started.
    pub reads: Option<u64>,
    /// How many operations wrote to disks since the pod started.
    pub writes: Option<u64>,
}

/// Measures the cgroup in `directory` (version 2).
pub(super) fn of_v2(directory: &Path) -> Usage {
    let read = |file: &str| content(&directory.join(file));
    let number = |file: &str| parse::number(&read(file)?);
    let memory = read("memory.stat");
    let memory = |key: &str| parse::keyed(memory.as_deref()?, key);
    let io = read("io.stat");
    let bytes = io.as_deref().map(parse::io_stat_bytes);
    let operations = io.as_deref().map(parse::io_stat_operations);
    Usage {
        cpu: read("cpu.stat").and_then(|text| parse::keyed(&text, "usage_usec")).map(Duration::from_micros),
        memory_bytes: number("memory.current").map(|all| working_set(all, memory("inactive_file"))),
        rss_bytes: memory("anon"),
        read_bytes: bytes.map(|bytes| bytes.read),
        written_bytes: bytes.map(|bytes| bytes.written),
        reads: operations.map(|operations| operations.read),
        writes: operations.map(|operations| operations.written),
    }
}

/// Measures the cgroup at `path` in the hierarchies of `root` (version 1).
pub(super) fn of_v1(root: &Path, path: &Path) -> Usage {
    let read = |controller: &str, file: &str| content(&root.join(controller).join(path).join(file));
    let number = |controller: &str, file: &str| parse::number(&read(controller, file)?);
    let memory = read("memory", "memory.stat");
    let memory = |key: &str| parse::keyed(memory.as_deref()?, key);
    let transferred = |file: &str| transferred_v1(&root.join("blkio").join(path), file);
    let bytes = transferred("blkio.throttle.io_service_bytes");
    let operations = transferred("blkio.throttle.io_serviced");
    Usage {
        cpu: number("cpuacct", "cpuacct.usage").map(Duration::from_nanos),
        memory_bytes: number("memory", "memory.usage_in_bytes")
            .map(|all| working_set(all, memory("total_inactive_file"))),
        rss_bytes: memory("total_rss"),
        read_bytes: bytes.map(|bytes| bytes.read),
        written_bytes: bytes.map(|bytes| bytes.written),
        reads: operations.map(|operations| operations.read),
        writes: operations.map(|operations| operations.written),
    }
}

/// The amounts that the pod's containers have transferred, by a file of the `blkio` controller. The kernel counts for each cgroup
/// alone in this file, so the containers are summed, in which all processes are. `None` if nothing is counted.
fn transferred_v1(pod: &Path, file: &str) -> Option<Transferred> {
    let containers = files::directories(pod).ok()?;
    let groups = std::iter::once(pod.to_owned()).chain(containers.iter().map(|name| pod.join(name)));
    groups.filter_map(|group| parse::blkio(&content(&group.join(file))?)).reduce(Transferred::plus)
}

/// The content of a file, or `None` if it cannot be read: a measure that fails is left out, and the others count.
fn content(path: &Path) -> Option<String> {
    files::read(path).ok().flatten()
}

fn working_set(all: u64, inactive_file: Option<u64>) -> u64 {
    all.saturating_sub(inactive_file.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn version_2_is_measured() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("cpu.stat", "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n"),
            ("memory.current", "10000\n"),
            ("memory.stat", "anon 4000\nfile 5000\ninactive_file 3000\n"),
            ("io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n"),
        ];
        write(root.path(), &files);
        let expected = Usage {
            cpu: Some(Duration::from_millis(1500)),
            memory_bytes: Some(7000),
            rss_bytes: Some(4000),
            read_bytes: Some(1),
            written_bytes: Some(2),
            reads: Some(3),
            writes: Some(4),
        };
        assert_eq!(of_v2(root.path()), expected);
        assert_eq!(of_v2(&root.path().join("gone")), Usage::default());
    }

    #[test]
    fn version_1_is_measured_over_its_hierarchies() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("cpuacct/kubepods/podu/cpuacct.usage", "2500000000\n"),
            ("memory/kubepods/podu/memory.usage_in_bytes", "10000\n"),
            (
                "memory/kubepods/podu/memory.stat",
                "rss 0\ninactive_file 0\ntotal_rss 4000\ntotal_inactive_file 3000\n",
            ),
            ("blkio/kubepods/podu/blkio.throttle.io_service_bytes", "Total 0\n"),
            ("blkio/kubepods/podu/c1/blkio.throttle.io_service_bytes", "8:0 Read 5\n8:0 Write 7\nTotal 12\n"),
            ("blkio/kubepods/podu/c2/blkio.throttle.io_service_bytes", "8:0 Read 1\n8:0 Write 1\nTotal 2\n"),
            ("blkio/kubepods/podu/blkio.throttle.io_serviced", "Total 0\n"),
            ("blkio/kubepods/podu/c1/blkio.throttle.io_serviced", "8:0 Read 2\n8:0 Write 3\nTotal 5\n"),
        ];
        write(root.path(), &files);
        let expected = Usage {
            cpu: Some(Duration::from_millis(2500)),
            memory_bytes: Some(7000),
            rss_bytes: Some(4000),
            read_bytes: Some(6),
            written_bytes: Some(8),
            reads: Some(2),
            writes: Some(3),
        };
        assert_eq!(of_v1(root.path(), Path::new("kubepods/podu")), expected);
        write(root.path(), &[("blkio/kubepods/podx/blkio.throttle.io_service_bytes", "Total 0\n")]);
        let uncounted = of_v1(root.path(), Path::new("kubepods/podx"));
        assert_eq!(uncounted, Usage::default(), "a kernel that does not count does not say 0");
    }
}
