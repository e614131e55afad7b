//! Finds the place in a manifest of a field that a message names.

use super::yaml::{Kind, Node};

/// The place of a field, or of the deepest existing field around it.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The byte offset of the field's key, of the list's item, or of the object itself.
    pub key: usize,
    /// The value at that place.
    pub node: &'a Node,
    /// Whether the place is that of the field itself.
    pub found: bool,
}

/// Finds a field by its path as Kubernetes and the operator write it: `spec.attributes[My Name]`,
/// `spec.template.spec.containers[0].name`, `spec.requests.resources.example.com/fpga`.
pub fn find<'a>(root: &'a Node, path: &str) -> Place<'a> {
    let mut place = Place { key: root.start, node: root, found: true };
    let mut rest = path.strip_prefix("<nil>").unwrap_or(path);
    while !rest.is_empty() {
        let Some((next, left)) = step(place.node, rest) else { return Place { found: false, ..place } };
        (place, rest) = (next, left);
    }
    place
}

fn step<'a, 'p>(node: &'a Node, path: &'p str) -> Option<(Place<'a>, &'p str)> {
    match &node.kind {
        Kind::Scalar(_) => None,
        Kind::List(items) => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            let item = items.get(index.parse::<usize>().ok()?)?;
            Some((Place { key: item.start, node: item, found: true }, rest))
        }
        Kind::Map(entries) => entries
            .iter()
            .filter_map(|entry| Some((entry, behind(path, &entry.key)?)))
            // Keys may contain dots: the longest matching key is meant.
            .max_by_key(|(entry, _)| entry.key.len())
            .map(|(entry, rest)| (Place { key: entry.start, node: &entry.value, found: true }, rest)),
    }
}

/// The rest of a path that starts with this key; `None` if the path starts otherwise.
fn behind<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    if let Some(rest) =
        path.strip_prefix('[').and_then(|rest| rest.strip_prefix(key)).and_then(|rest| rest.strip_prefix(']'))
    {
        return Some(rest);
    }
    let rest = path.strip_prefix('.').unwrap_or(path).strip_prefix(key)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::super::yaml::parse;
    use super::*;

    #[test]
    fn paths_lead_to_their_fields() {
        let text = "a:\n  b.c/d: [x, {e: 1}]\n  'f g': 2\n  b: 3\n";
        let parsed = parse(text);
        let root = &parsed.documents[0];
        for (path, key, found) in [
            ("<nil>", "a:", true),
            ("a", "a:", true),
            ("a.b", "b: 3", true),
            ("a.b.c/d", "b.c/d", true),
            ("a[b.c/d][1].e", "e: 1", true),
            ("a.b.c/d[1].f", "{e", false),
            ("a.b.c/d[2]", "b.c/d", false),
            ("a[f g]", "'f g'", true),
            ("a.f g", "'f g'", true),
            ("a.bb", "a:", false),
            ("z", "a:", false),
        ] {
            let place = find(root, path);
            assert_eq!((place.key, place.found), (text.find(key).unwrap(), found), "{path}");
        }
    }
}
