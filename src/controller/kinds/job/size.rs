//! The bound on an HTCJob as a whole.

use std::io;

use api::{HTCJob, HTCJobSpec};
use model::pool::Problem;

/// The largest spec, in bytes of JSON. A pod template of an ordinary job has 1 to 4 KiB.
pub const LARGEST: usize = 256 << 10;

/// The problem of a job whose spec is larger than [`LARGEST`]. The operator holds the templates of all jobs in memory.
pub(super) fn too_large(job: &HTCJob) -> Option<Problem> {
    let size = size(&job.spec);
    (size > LARGEST).then(|| Problem {
        reason: "ObjectTooLarge",
        field: "spec".to_owned(),
        message: format!(
            "has {size} bytes of JSON, and may have {LARGEST}; put scripts and data into a ConfigMap, an image or a volume"
        ),
    })
}

fn size(spec: &HTCJobSpec) -> usize {
    let mut count = Count(0);
    // Neither the counter nor a spec that was JSON can fail.
    serde_json::to_writer(&mut count, spec).map_or(usize::MAX, |()| count.0)
}

/// Counts what is written.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
