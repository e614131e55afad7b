//! The text of a plot: removes what XML forbids, estimates widths, shortens and wraps.

/// An upper estimate of a text's width, in the unit of `size`. The viewer of the SVG chooses the font; the estimate
/// takes the bold letters of a wide one (DejaVu Sans).
pub(super) fn width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '\'' | '|' | '!' | '.' | ',' | ':' | ';' => 0.38,
            'f' | 't' | 'r' | ' ' | '(' | ')' | '-' | '/' => 0.46,
            'm' | 'M' | 'W' | 'w' | '%' | '@' => 1.02,
            'A'..='Z' | '&' => 0.78,
            c if c.is_ascii() => 0.70,
            c if (c as u32) < 0x1100 => 0.75,
            _ => 1.0,
        })
        .sum();
    ems * size
}

/// The text on one line, without characters that XML forbids.
pub(super) fn clean(text: &str) -> String {
    let mut clean: String = text
        .chars()
        .map(|c| match c {
            c if c.is_whitespace() => ' ',
            '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect();
    clean.truncate(clean.trim_end().len());
    clean
}

/// The text, with its middle replaced by `…` if it is wider than `room`. Both ends stay, because names often differ
/// at either end.
pub(super) fn fit(text: &str, size: f64, room: f64) -> String {
    let text = clean(text);
    if width(&text, size) <= room {
        return text;
    }
    let chars: Vec<char> = text.chars().collect();
    // Long texts are cut at once; the loop then drops one character at a time.
    let mut kept = chars.len().min(200);
    loop {
        let (head, tail) = (kept.div_ceil(2), kept / 2);
        let shortened: String = chars
            .iter()
            .take(head)
            .chain(std::iter::once(&'…'))
            .chain(chars.iter().skip(chars.len() - tail))
            .collect();
        if kept <= 1 || width(&shortened, size) <= room {
            return shortened;
        }
        kept -= 1;
    }
}

/// Breaks the text into at most `most` lines no wider than `room`. The last line ends in `…` if text is left out.
pub(super) fn wrap(text: &str, size: f64, room: f64, most: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in clean(text).split(' ').filter(|word| !word.is_empty()) {
        let joined = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if width(&joined, size) <= room {
            line = joined;
            continue;
        }
        if lines.len() + 1 == most {
            line = fit(&format!("{line} …"), size, room);
            break;
        }
        if !line.is_empty() {
            lines.push(line);
        }
        line = fit(word, size, room);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// The text, escaped for the place between two tags.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
