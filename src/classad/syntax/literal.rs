//! String literals: quotes and escapes.

/// The meaning of a backslash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// As in C, with octal numbers. An unknown escape is the character itself.
    C,
    /// Only `\"` is an escape, and not where the quote ends the line: there the backslash stands for itself.
    QuoteOnly,
}

/// Reads a quoted text from its opening quote on: the characters, and the number of bytes read. The error says what
/// should have been there.
pub(crate) fn quoted(text: &str, quote: char, escapes: Escapes) -> Result<(String, usize), &'static str> {
    let plain = text.get(1..).and_then(|inside| inside.split_once(quote)).map(|(plain, _)| plain);
    if let Some(plain) = plain.filter(|plain| !plain.contains('\\')) {
        return Ok((plain.to_owned(), plain.len() + 2));
    }
    let mut bytes: Vec<u8> = Vec::new();
    let mut rest = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = rest.next() {
        match c {
            _ if c == quote => {
                let string = String::from_utf8(bytes)
                    .unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned());
                return Ok((string, at + 1));
            }
            '\\' if escapes == Escapes::QuoteOnly => {
                let closes_line =
                    |next: usize| text.get(next + 1..).is_none_or(|after| after.trim_end().is_empty());
                match rest.peek() {
                    Some(&(next, c)) if c == quote && !closes_line(next) => {
                        rest.next();
                        bytes.push(quote as u8);
                    }
                    _ => bytes.push(b'\\'),
                }
            }
            '\\' => escape(&mut rest, &mut bytes)?,
            _ => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Err(if quote == '"' { "'\"' to end the string" } else { "\"'\" to end the quoted name" })
}

type Chars<'t> = std::iter::Peekable<std::iter::Skip<std::str::CharIndices<'t>>>;

fn escape(rest: &mut Chars<'_>, bytes: &mut Vec<u8>) -> Result<(), &'static str> {
    let Some((_, c)) = rest.next() else { return Ok(()) };
    match c {
        'a' => bytes.push(7),
        'b' => bytes.push(8),
        'f' => bytes.push(12),
        'n' => bytes.push(b'\n'),
        'r' => bytes.push(b'\r'),
        't' => bytes.push(b'\t'),
        'v' => bytes.push(11),
        '0'..='7' => bytes.push(octal(c, rest)?),
        _ => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
    Ok(())
}

/// A byte other than 0, written as up to three octal digits.
fn octal(first: char, rest: &mut Chars<'_>) -> Result<u8, &'static str> {
    let mut code = first.to_digit(8).unwrap_or(0);
    let more = if first <= '3' { 2 } else { 1 };
    for _ in 0..more {
        let Some(digit) = rest.peek().and_then(|(_, c)| c.to_digit(8)) else { break };
        rest.next();
        code = code * 8 + digit;
    }
    match u8::try_from(code) {
        Ok(0) | Err(_) => Err("an octal escape from \\1 to \\377"),
        Ok(byte) => Ok(byte),
    }
}
