//! The attributes of a node's operating system in the ad, under HTCondor's names.
//!
//! Source: the manual's machine ClassAd attributes; where the manual is silent, ads of HTCondor 25.14's condor_startd.

use crate::pool::System;
use classad::{Ad, Expr};

/// A part of a distribution's long name, and HTCondor's name of the distribution. The first entry that is found counts.
const DISTRIBUTIONS: &[(&str, &str)] = &[
    ("red hat", "RedHat"),
    ("redhat", "RedHat"),
    ("fedora", "Fedora"),
    ("ubuntu", "Ubuntu"),
    ("debian", "Debian"),
    ("almalinux", "AlmaLinux"),
    ("rocky", "Rocky"),
    ("centos", "CentOS"),
    ("opensuse", "openSUSE"),
    ("suse", "SUSE"),
    ("amazon linux", "AmazonLinux"),
];

/// Puts `HasDocker` and `HasContainer`, which are true where programs run in images, and `OpSysLongName`, `OpSysName`,
/// `OpSysShortName`, `OpSysMajorVer`, `OpSysVer`, `OpSysAndVer`, `OpSysLegacy` and the `Utsname` attributes into the
/// ad. Those about which the kubelet reports nothing are left out.
pub(super) fn set(ad: &mut Ad, node: &Expr, os: &str, arch: &str, system: &System) {
    ad.set("OpSysLegacy", &*os.to_ascii_uppercase());
    ad.insert("UtsnameNodename", node.clone());
    ad.set("UtsnameMachine", utsname_machine(arch));
    if os.eq_ignore_ascii_case("linux") {
        ad.set("UtsnameSysname", "Linux");
        ad.set("HasDocker", true);
        ad.set("HasContainer", true);
    }
    if !system.kernel.is_empty() {
        ad.set("UtsnameRelease", &*system.kernel);
    }
    if system.image.is_empty() {
        return;
    }
    let name = distribution(&system.image, os);
    ad.set("OpSysLongName", &*system.image);
    ad.set("OpSysName", &*name);
    ad.set("OpSysShortName", &*name);
    let version = version(&system.image);
    // HTCondor writes 0 for a release without a number.
    ad.set("OpSysAndVer", &*format!("{name}{}", version.map_or(0, |(major, _)| major)));
    if let Some((major, minor)) = version {
        ad.set("OpSysMajorVer", major);
        ad.set("OpSysVer", major * 100 + minor);
    }
}

fn distribution(long: &str, os: &str) -> String {
    let lower = long.to_lowercase();
    let known = DISTRIBUTIONS.iter().find(|(word, _)| lower.contains(word));
    known.map_or_else(|| os.to_ascii_uppercase(), |(_, name)| (*name).to_owned())
}

/// Major and minor version: the first number of the long name, and the number after its point. The minor version is at most 99,
/// so that `OpSysVer`, which is major * 100 + minor, orders releases.
fn version(long: &str) -> Option<(i64, i64)> {
    let from = long.find(|c: char| c.is_ascii_digit())?;
    let mut numbers = long.get(from..)?.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.split('.');
    let number = |text: &str| text.parse::<i64>().ok();
    let major = number(numbers.next()?)?.min(9_999);
    let minor = numbers.next().and_then(number).unwrap_or(0).min(99);
    Some((major, minor))
}

fn utsname_machine(arch: &str) -> &str {
    match arch {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_and_their_versions() {
        for (image, name, and_ver, ver) in [
            ("Ubuntu 24.04.1 LTS", "Ubuntu", "Ubuntu24", Some(2404)),
            ("Debian GNU/Linux 12 (bookworm)", "Debian", "Debian12", Some(1200)),
            ("Debian GNU/Linux forky/sid", "Debian", "Debian0", None),
            ("Red Hat Enterprise Linux 9.4 (Plow)", "RedHat", "RedHat9", Some(904)),
            ("Rocky Linux 8.10 (Green Obsidian)", "Rocky", "Rocky8", Some(810)),
            ("AlmaLinux 9.4 (Seafoam Ocelot)", "AlmaLinux", "AlmaLinux9", Some(904)),
            ("CentOS Linux 7 (Core)", "CentOS", "CentOS7", Some(700)),
            ("openSUSE Leap 15.6", "openSUSE", "openSUSE15", Some(1506)),
            ("Talos (v1.7.6)", "LINUX", "LINUX1", Some(107)),
        ] {
            let mut ad = Ad::new();
            set(
                &mut ad,
                &Expr::literal("n"),
                "linux",
                "amd64",
                &System { image: image.into(), kernel: "6.8".into() },
            );
            let text = ad.to_long();
            let has = |line: String| assert!(text.lines().any(|found| found == line), "{line}: {text}");
            has(format!("OpSysName = \"{name}\""));
            has(format!("OpSysAndVer = \"{and_ver}\""));
            has(format!("OpSysLongName = \"{image}\""));
            match ver {
                Some(ver) => has(format!("OpSysVer = {ver}")),
                None => assert!(!ad.contains("OpSysVer"), "{image}"),
            }
        }
    }

    #[test]
    fn what_the_kubelet_does_not_say_is_not_said() {
        let mut ad = Ad::new();
        set(&mut ad, &Expr::literal("n"), "linux", "arm64", &System::default());
        assert!(!ad.contains("OpSysLongName"));
        assert!(!ad.contains("UtsnameRelease"));
        assert!(ad.to_long().contains("UtsnameMachine = \"aarch64\""));
    }
}
