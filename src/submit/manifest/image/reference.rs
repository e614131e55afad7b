//! The syntax of references to images: `[REGISTRY/]PATH[:TAG][@DIGEST]`.

/// The longest tag.
const LONGEST_TAG: usize = 128;

/// Why no kubelet can pull an image of this name. `None`: nothing is wrong with the name.
pub(super) fn fault(name: &str) -> Option<String> {
    let (rest, digest) = name.split_once('@').map_or((name, None), |(rest, digest)| (rest, Some(digest)));
    let place = rest.rfind('/').unwrap_or_default();
    let tag_at = rest.get(place..)?.find(':').map(|at| place + at);
    let (repository, tag) = match tag_at.and_then(|at| rest.split_at_checked(at)) {
        Some((repository, tag)) => (repository, tag.get(1..)),
        None => (rest, None),
    };
    let (registry, path) = match repository.split_once('/') {
        Some((first, path)) if is_registry(first) => (Some(first), path),
        _ => (None, repository),
    };
    let is_path = |path: &str| path.split('/').all(is_component);
    let is_right = registry.is_none_or(|registry| registry.chars().all(is_of_registry))
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    if is_right && is_path(path) {
        return None;
    }
    let lower = path.to_ascii_lowercase();
    Some(if is_right && is_path(&lower) {
        let fixed = name.replacen(path, &lower, 1);
        format!("its path has small letters alone: write docker://{fixed}")
    } else {
        "expected [REGISTRY/]PATH[:TAG][@DIGEST], with small letters, digits and ._- in the path, and without blanks".to_owned()
    })
}

/// Whether the first part of a name is a registry, and not a part of the path.
fn is_registry(part: &str) -> bool {
    part == "localhost" || part.contains(['.', ':'])
}

fn is_of_registry(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']')
}

fn is_component(part: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.starts_with(is_end)
        && part.ends_with(is_end)
        && part.chars().all(|c| is_end(c) || matches!(c, '.' | '_' | '-'))
}

fn is_tag(tag: &str) -> bool {
    tag.len() <= LONGEST_TAG
        && tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && tag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hash)| {
        !algorithm.is_empty() && hash.len() >= 32 && hash.chars().all(|c| c.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn names_of_images() {
        let digest = "0123456789abcdef".repeat(4);
        for name in [
            "debian",
            "debian:12",
            "opensciencegrid/osgvo-el9:latest",
            "registry.example:5000/a/b_c/d--e:V1.2_x",
            "localhost/a",
            "Registry.Example/a",
            "[::1]:5000/a:1",
            &format!("debian@sha256:{digest}"),
            &format!("quay.io/a/b:1@sha256:{digest}"),
        ] {
            assert_eq!(fault(name), None, "{name}");
        }
        for (name, says) in [
            ("Debian:12", "its path has small letters alone: write docker://debian:12"),
            ("ghcr.io/Me/Tool:V1", "its path has small letters alone: write docker://ghcr.io/me/tool:V1"),
            ("bad image", "expected [REGISTRY/]PATH"),
            ("", "expected"),
            ("a//b", "expected"),
            ("a/", "expected"),
            ("debian:", "expected"),
            ("debian:1 2", "expected"),
            ("debian@sha256:12", "expected"),
            ("-a", "expected"),
            ("a$(b)", "expected"),
        ] {
            assert!(fault(name).is_some_and(|why| why.starts_with(says)), "{name}: {:?}", fault(name));
        }
    }
}
