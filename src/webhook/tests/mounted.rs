//! A certificate from files, as the kubelet writes them, over real TLS.

use std::os::unix::fs::symlink;

use super::*;
use crate::certificate::{make, names};
use crate::server::tests::{post_to, start};

const SERVICE: (&str, &str) = ("slotwright-webhook", "slotwright-system");
const DAY: u64 = 86_400;

fn now() -> UnixTime {
    unix(Clock::start())
}

fn later(days: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(now().as_secs() + days * DAY))
}

fn fresh() -> Certificate {
    make(&names(SERVICE.0, SERVICE.1), now(), None).unwrap()
}

/// Writes files as the kubelet does: into a directory of their own, to which a link then points.
fn write(root: &Path, version: &str, files: &[(&str, &str)]) {
    let own = root.join(version);
    std::fs::create_dir(&own).unwrap();
    for (name, text) in files {
        std::fs::write(own.join(name), text).unwrap();
        let link = root.join(name);
        if !link.is_symlink() {
            symlink(Path::new("..data").join(name), link).unwrap();
        }
    }
    symlink(version, root.join("..data_tmp")).unwrap();
    std::fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
}

fn files(of: &Certificate) -> [(&str, &str); 3] {
    [("tls.crt", &of.certificate), ("tls.key", &of.key), ("ca.crt", &of.authorities)]
}

fn mounted(root: &Path, out: &watch::Sender<Option<Arc<ServerConfig>>>) -> Mounted {
    Mounted::new(root.to_owned(), crate::certificate::asked_for(SERVICE.0, SERVICE.1), out.clone())
}

fn said(looked: Result<(), Wrong>) -> String {
    looked.err().map(|wrong| wrong.to_string()).unwrap_or_default()
}

#[tokio::test]
async fn a_rotated_certificate_is_served_without_a_restart() {
    let (server, root) = (start().await, tempfile::tempdir().unwrap());
    let (first, second) = (fresh(), fresh());
    let mut mounted = mounted(root.path(), &server.certificate);
    let answers = async |authorities: &str| post_to(&server, authorities, "/validate", b"{}").await.is_ok();

    let missing = said(mounted.look(now()).await);
    assert!(missing.contains("tls.crt: ") && missing.contains("may not be there yet"), "{missing}");
    assert!(!answers(&first.authorities).await, "nothing is served without a certificate");

    write(root.path(), "..1", &files(&first));
    assert_eq!(said(mounted.look(now()).await), "");
    assert!(answers(&first.authorities).await);

    write(root.path(), "..2", &files(&second));
    assert!(answers(&first.authorities).await, "not looked at yet");
    assert_eq!(said(mounted.look(now()).await), "");
    assert!(answers(&second.authorities).await && !answers(&first.authorities).await);
}

#[tokio::test]
async fn what_is_served_stays_while_the_files_are_wrong() {
    let (server, root) = (start().await, tempfile::tempdir().unwrap());
    let (first, second) = (fresh(), fresh());
    let mut mounted = mounted(root.path(), &server.certificate);
    write(root.path(), "..1", &files(&first));
    assert_eq!(said(mounted.look(now()).await), "");
    let torn = Certificate { key: second.key.clone(), ..first.clone() };
    let empty = Certificate { certificate: String::new(), ..second.clone() };
    for (version, wrong) in [("..2", &torn), ("..3", &empty)] {
        write(root.path(), version, &files(wrong));
        let said = said(mounted.look(now()).await);
        assert!(said.contains(" cannot be served: "), "{version}: {said}");
        assert!(post_to(&server, &first.authorities, "/validate", b"{}").await.is_ok(), "{version}");
    }
    write(root.path(), "..4", &files(&second));
    assert_eq!(said(mounted.look(now()).await), "");
    assert!(post_to(&server, &second.authorities, "/validate", b"{}").await.is_ok());
}

#[tokio::test]
async fn a_certificate_that_nobody_will_believe_is_served_and_told_of() {
    let one = fresh();
    let of_another = make(&names("other", SERVICE.1), now(), None).unwrap();
    let unknown = Certificate { authorities: String::new(), ..of_another.clone() };
    for (what, certificate, now, told) in [
        ("good", &one, now(), ""),
        ("expired", &one, later(91), "no API server will believe the certificate"),
        ("of another Service", &of_another, now(), "no API server will believe the certificate"),
        ("of an authority that the files do not have", &unknown, now(), ""),
    ] {
        let (out, root) = (watch::channel(None).0, tempfile::tempdir().unwrap());
        let mut mounted = mounted(root.path(), &out);
        write(root.path(), "..1", &files(certificate));
        let said = said(mounted.look(now).await);
        assert!(said.starts_with(told) && said.is_empty() == told.is_empty(), "{what}: {said}");
        assert!(out.borrow().is_some(), "{what}");
    }
}
