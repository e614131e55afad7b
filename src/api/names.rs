//! Names and labels as Kubernetes takes them.

/// Lower case letters, digits and `-`, with a letter or digit at either end: a DNS label, if it is not too long for one.
pub fn is_dns_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !text.is_empty()
        && text.bytes().all(|b| inner(b) || b == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
}

/// DNS labels with dots between them, if together they are not too long: a DNS subdomain.
pub fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// Letters, digits, `-`, `_` and `.`, at most 63, with a letter or digit at either end: a label's value that is not empty, or what
/// stands behind the slash in its key.
pub fn is_label_name(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    text.len() <= 63
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && edge(text.bytes().next())
        && edge(text.bytes().last())
}

/// A label's key: a name, behind a subdomain and a slash or without.
pub fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        None => is_label_name(text),
        Some((domain, name)) => domain.len() <= 253 && is_subdomain(domain) && is_label_name(name),
    }
}
