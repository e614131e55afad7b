//! The string formats that the real server checks. As in the real server, every text has a format that is not known here
//! (`uint32`, `quantity`, ...).

use std::net::{Ipv4Addr, Ipv6Addr};

/// Whether `text` has this format, or the format is not known.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "datetime" => text.contains(['T', 't']) && text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "duration" => duration(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => cidr(text),
        "uuid" => uuid(text, None),
        "uuid3" => uuid(text, Some('3')),
        "uuid4" => uuid(text, Some('4')),
        "uuid5" => uuid(text, Some('5')),
        "hostname" => hostname(text),
        "email" => text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && hostname(host)),
        "uri" => text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)) || text.starts_with('/'),
        "mac" => mac(text),
        "byte" => base64(text),
        _ => true,
    }
}

/// Whether the text is a duration of Go (`1h30m`, `1.5s`) or in the long form of go-openapi (`3 days`).
fn duration(text: &str) -> bool {
    if let Some((number, unit)) = text.trim().split_once(' ') {
        let units = ["second", "minute", "hour", "day", "week"];
        return number.parse::<u64>().is_ok() && units.contains(&unit.trim().trim_end_matches('s'));
    }
    let mut rest = text.trim_start_matches(['+', '-']);
    if rest == "0" {
        return true;
    }
    let mut parts = 0;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Some((number, tail)) = rest.split_at_checked(unit_at) else { return false };
        let next = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let Some((unit, after)) = tail.split_at_checked(next) else { return false };
        let known = ["ns", "us", "µs", "ms", "s", "m", "h", "d", "w"].contains(&unit);
        if !known || number.parse::<f64>().is_err() {
            return false;
        }
        parts += 1;
        rest = after;
    }
    parts > 0
}

fn cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => 32,
        Ok(std::net::IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|b| b <= most)
}

fn uuid(text: &str, version: Option<char>) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let shape = text.len() == 32 || text.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    shape
        && digits.bytes().all(|b| b.is_ascii_hexdigit())
        && version.is_none_or(|v| digits.chars().nth(12) == Some(v))
}

fn hostname(text: &str) -> bool {
    let label = |l: &str| {
        !l.is_empty()
            && l.len() <= 63
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    text.len() <= 255 && text.trim_end_matches('.').split('.').all(label)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

fn mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    matches!(parts.len(), 6 | 8 | 20)
        && parts.iter().all(|p| p.len() == 2 && u8::from_str_radix(p, 16).is_ok())
}

fn base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_'))
}
