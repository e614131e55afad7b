//! Holds what we build from to `deny.toml`, without cargo-deny: licenses, sources, and one version of what must be one.

// A test states what it expects by panicking.
#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

/// The part of `deny.toml` that is checked here.
#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

/// A crate that may not be there, or only once.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Ban {
    name: String,
    #[serde(default)]
    deny_multiple_versions: bool,
}

/// The part of `cargo metadata` that is checked here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn deny() -> Deny {
    let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    toml::from_str(&text).expect("deny.toml is as cargo-deny wants it")
}

/// Every package that a Linux build or test of ours takes in.
fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", "x86_64-unknown-linux-musl"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout).unwrap();
    let used: BTreeSet<String> = metadata.resolve.nodes.into_iter().map(|node| node.id).collect();
    metadata.packages.into_iter().filter(|package| used.contains(&package.id)).collect()
}

/// Why a license is not accepted, if it is not.
fn objection(license: Option<&str>, allowed: &[Licensee]) -> Option<String> {
    let Some(text) = license else { return Some("names no license".to_owned()) };
    match Expression::parse_mode(text, ParseMode::LAX) {
        Err(error) => Some(format!("license `{text}` is no SPDX expression: {}", error.reason)),
        Ok(expression) if expression.evaluate(|wanted| allowed.iter().any(|have| have.satisfies(wanted))) => {
            None
        }
        Ok(_) => Some(format!("license `{text}` is not in deny.toml")),
    }
}

fn allowed() -> Vec<Licensee> {
    deny()
        .licenses
        .allow
        .iter()
        .map(|text| Licensee::parse(text).expect("an SPDX license in deny.toml"))
        .collect()
}

#[test]
fn every_license_is_allowed() {
    let allowed = allowed();
    let found: Vec<String> = packages()
        .iter()
        .filter_map(|package| Some((package, objection(package.license.as_deref(), &allowed)?)))
        .map(|(package, why)| format!("{} {}: {why}", package.name, package.version))
        .collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn every_crate_comes_from_the_registry() {
    for package in packages() {
        let source = package.source.as_deref();
        let ours = source.is_none() && package.name.contains("slotwright");
        assert!(
            ours || source.is_some_and(|from| from.starts_with("registry+")),
            "{}: {source:?}",
            package.name
        );
    }
}

#[test]
fn what_must_be_one_is_one_and_what_is_banned_is_absent() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        versions.entry(package.name).or_default().insert(package.version);
    }
    for ban in deny().bans.deny {
        let found = versions.get(&ban.name).map_or(0, BTreeSet::len);
        let most = usize::from(ban.deny_multiple_versions);
        assert!(found <= most, "{}: {:?}, but deny.toml allows {most}", ban.name, versions.get(&ban.name));
    }
}

#[test]
fn objections_are_raised() {
    let allowed = allowed();
    for (license, accepted) in [
        (Some("MIT"), true),
        (Some("MIT/Apache-2.0"), true),
        (Some("GPL-3.0-only OR MIT"), true),
        (Some("(MIT OR Apache-2.0) AND Unicode-3.0"), true),
        (Some("MIT AND GPL-3.0-only"), false),
        (Some("GPL-3.0-only"), false),
        (Some("mine"), false),
        (None, false),
    ] {
        assert_eq!(objection(license, &allowed).is_none(), accepted, "{license:?}");
    }
}
