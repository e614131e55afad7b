//! Every link in a page of this repository leads somewhere, and every path that a page of the docs names is there.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Markdown files below `directory`, hidden directories and build output left out.
fn pages(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            found.append(&mut pages(&path)?);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The lines of a page that are no code: those between ``` marks are left out, as are those indented by four.
fn prose(text: &str) -> Vec<&str> {
    let mut fenced = false;
    text.lines()
        .filter(|line| {
            let mark = line.trim_start().starts_with("```");
            fenced ^= mark;
            !mark && !fenced && !line.starts_with("    ")
        })
        .collect()
}

/// The anchors of a page, which a link may name behind the `#`: headings, as GitHub makes anchors of them, and `<a
/// id="...">`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in prose(text) {
        if let Some(heading) = line.strip_prefix('#') {
            let slug = slug(heading.trim_start_matches('#').trim());
            let several = (1..1000).map(|n| format!("{slug}-{n}")).find(|slug| !found.contains(slug));
            if !found.insert(slug) {
                found.extend(several);
            }
        }
        found.extend(
            line.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned),
        );
    }
    found
}

fn slug(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

#[test]
fn every_link_in_every_page_leads_somewhere() {
    let pages = pages(root()).unwrap();
    assert!(pages.len() > 10, "{pages:?}");
    let mut broken = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        for link in prose(&text).iter().flat_map(|line| line.split("](").skip(1)) {
            let link = link.split(')').next().unwrap_or_default();
            if link.starts_with("https://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let known = || fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor));
            if !target.exists() || !(anchor.is_empty() || known()) {
                broken.push(format!("{}: {link}", page.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn every_page_of_the_book_is_in_its_table_of_contents() {
    let contents = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let missing: Vec<String> = pages(&root().join("docs"))
        .unwrap()
        .iter()
        .map(|page| page.strip_prefix(root().join("docs")).unwrap().display().to_string())
        .filter(|page| page != "README.md" && !contents.contains(&format!("]({page})")))
        .collect();
    assert!(missing.is_empty(), "docs/README.md lacks {missing:?}");
}

#[test]
fn every_path_that_a_page_names_is_there() {
    let tops =
        ["benches/", "charts/", "crds/", "deploy/", "docs/", "examples/", "fuzz/", "hack/", "src/", "tests/"];
    let mut missing = Vec::new();
    for page in pages(root()).unwrap() {
        let text = fs::read_to_string(&page).unwrap();
        let marked = prose(&text).into_iter().flat_map(|line| line.split('`').skip(1).step_by(2));
        for word in marked.flat_map(str::split_whitespace) {
            // A word is a pattern, and not a path, if it has a wildcard or NAME in it, or names files that a run
            // writes.
            let pattern = word.contains(['*', '<', '{', '$'])
                || word.contains("NAME")
                || word.starts_with("fuzz/artifacts");
            if tops.iter().any(|top| word.starts_with(top)) && !pattern && !root().join(word).exists() {
                missing.push(format!("{}: {word}", page.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(missing.is_empty(), "paths that are not there:\n{}", missing.join("\n"));
}

#[test]
fn anchors_are_what_github_makes_of_headings() {
    let text =
        "# Why `q` waits, and what to do\n## Fields\n```\n# none\n```\n## Fields\n<a id=\"here\"></a>\n";
    let expected = ["fields", "fields-1", "here", "why-q-waits-and-what-to-do"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
}
