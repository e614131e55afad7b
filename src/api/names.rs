//! Names and labels as Kubernetes takes them.

/// Whether a text has the form of a DNS label: lower case letters, digits and `-`, with a letter or digit at either end.
/// The length is not checked.
pub fn is_dns_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !text.is_empty()
        && text.bytes().all(|b| inner(b) || b == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
}

/// Whether a text has the form of a DNS subdomain: DNS labels with dots between them. The length is not checked.
pub fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// Whether a text is a label's value that is not empty, or the name in a label's key: at most 63 letters, digits, `-`,
/// `_` and `.`, with a letter or digit at either end.
pub fn is_label_name(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    text.len() <= 63
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && edge(text.bytes().next())
        && edge(text.bytes().last())
}

/// Whether a text is a label's key: a name, with or without a subdomain and a slash before it.
pub fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        None => is_label_name(text),
        Some((domain, name)) => domain.len() <= 253 && is_subdomain(domain) && is_label_name(name),
    }
}
