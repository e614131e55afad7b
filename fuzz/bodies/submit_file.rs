//! Reads any text as a submit file, and makes its ads and HTCJobs twice. Both must end soon, not panic, and give the same.

use condor_config::{FileError, Host, Source};
use submit::manifest::{self, FoundFile, Settings};
use submit::{Entry, Options, World, submit};

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    let files =
        |name: &str| if name.len() < 4 { Ok("a 1\nb,2\n".to_owned()) } else { Err(FileError::Missing) };
    let listing = |_: &str| Ok(vec![Entry { name: "a.dat".to_owned(), is_directory: false }]);
    let contents = |path: &str| match path.len() % 4 {
        0 => FoundFile::Missing,
        1 => FoundFile::Directory(vec!["a".to_owned(), "b.x".to_owned()]),
        _ => FoundFile::File { bytes: path.as_bytes().to_vec(), is_executable: path.contains('x') },
    };
    let world = World {
        host: Host {
            seed: Some(1),
            environment: Some([("HOME".to_owned(), "/".to_owned())].into()),
            ..Host::none()
        },
        cluster: manifest::CLUSTER,
        files: Some(&files),
        listing: Some(&listing),
        ..World::none()
    };
    let once = || {
        let submission = submit(&Source::new("fuzz", text), &Options::default(), &world);
        let settings = Settings { image: Some("image".to_owned()), ..Settings::default() };
        let manifests =
            submission.cluster.as_ref().map(|cluster| manifest::jobs(cluster, &settings, &contents));
        let ads: Vec<String> = submission
            .cluster
            .iter()
            .flat_map(|cluster| &cluster.procs)
            .map(|proc| proc.ad.to_long())
            .collect();
        (
            submission.findings,
            ads,
            manifests.map(|manifests| (manifests.jobs, manifests.files, manifests.findings)),
        )
    };
    let first = once();
    for finding in &first.0 {
        let _ = finding.to_string();
    }
    assert_eq!(once(), first);
}
