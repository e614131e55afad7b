//! C's formats of numbers and strings.

use super::scan::Macro;

/// The largest width and precision.
const MAX_WIDTH: usize = 1000;

/// A format of C's printf with one conversion: text, `%`, flags, width, precision, length, conversion, text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    before: String,
    after: String,
    /// The flags among `-0+ #'`.
    flags: String,
    width: usize,
    precision: Option<usize>,
    bits: u32,
    conversion: char,
}

impl Format {
    /// Parses a format. `None`: the format has no conversion, several, or one that is not supported.
    pub fn parse(text: &str) -> Option<Self> {
        let (before, rest) = conversion(text)?;
        let mut format = Self {
            before,
            after: String::new(),
            flags: String::new(),
            width: 0,
            precision: None,
            bits: 32,
            conversion: 'd',
        };
        let mut chars = rest.chars().peekable();
        while let Some(flag) = chars.next_if(|flag| "-0+ #'".contains(*flag)) {
            format.flags.push(flag);
        }
        let number = |chars: &mut std::iter::Peekable<std::str::Chars>| {
            let mut number = 0usize;
            while let Some(digit) = chars.peek().and_then(|digit| digit.to_digit(10)) {
                chars.next();
                number = number.saturating_mul(10).saturating_add(digit as usize);
            }
            number.min(MAX_WIDTH)
        };
        format.width = number(&mut chars);
        if chars.next_if_eq(&'.').is_some() {
            format.precision = Some(number(&mut chars));
        }
        while let Some(length) = chars.next_if(|length| "hlLqjzt".contains(*length)) {
            format.bits = match (length, format.bits) {
                ('h', 16) => 8,
                ('h', _) => 16,
                _ => 64,
            };
        }
        format.conversion = chars.next().filter(|conversion| "diouxXcpeEfFgGaAs".contains(*conversion))?;
        let after: String = chars.collect();
        // There is no second value for a second conversion.
        format.after = match conversion(&after) {
            None => after.replace("%%", "%"),
            Some(_) => return None,
        };
        Some(format)
    }

    /// The format `%s`.
    pub fn text() -> Self {
        let (before, after, flags) = (String::new(), String::new(), String::new());
        Self { before, after, flags, width: 0, precision: None, bits: 32, conversion: 's' }
    }

    /// The least width of the value's text; 0 if the format has none.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Whether spaces that make up the width stand behind the value: the flag `-`.
    pub fn is_left(&self) -> bool {
        self.has('-')
    }

    /// Whether a function's value can be printed with this conversion.
    pub(super) fn fits(&self, kind: Macro) -> bool {
        match kind {
            Macro::Int => "diouxXcp".contains(self.conversion),
            Macro::Real => "eEfFgGaA".contains(self.conversion),
            _ => self.conversion == 's',
        }
    }

    /// An integer as one of the conversions `diouxXcp` prints it. Without a length such as `ll`, the lower 32 bits count.
    pub fn integer(&self, number: i64) -> String {
        let shift = 64 - self.bits.min(64);
        let signed = (number << shift) >> shift;
        let unsigned = (number.cast_unsigned() << shift) >> shift;
        let (prefix, digits) = match self.conversion {
            'c' => {
                let letter = char::from(number.to_le_bytes()[0]);
                return self.padded("", &letter.to_string(), false);
            }
            'o' => (if self.has('#') { "0" } else { "" }, format!("{unsigned:o}")),
            'u' => ("", unsigned.to_string()),
            'x' if self.has('#') && unsigned != 0 => ("0x", format!("{unsigned:x}")),
            'X' if self.has('#') && unsigned != 0 => ("0X", format!("{unsigned:X}")),
            'x' => ("", format!("{unsigned:x}")),
            'X' => ("", format!("{unsigned:X}")),
            'p' => ("0x", format!("{:x}", number.cast_unsigned())),
            _ => (self.sign(signed < 0), signed.unsigned_abs().to_string()),
        };
        let mut digits = digits;
        if let Some(precision) = self.precision {
            let missing = precision.saturating_sub(digits.len());
            digits.insert_str(0, &"0".repeat(missing));
        }
        self.padded(prefix, &digits, self.has('0') && self.precision.is_none())
    }

    /// A text as `%s` prints it. The precision counts bytes.
    pub fn string(&self, text: &str) -> String {
        let cut = self.precision.map_or(text.len(), |precision| text.floor_char_boundary(precision));
        self.padded("", text.get(..cut).unwrap_or(text), false)
    }

    /// A real as one of the conversions `eEfFgGaA` prints it.
    pub fn real(&self, number: f64) -> String {
        let sign = self.sign(number.is_sign_negative());
        let upper = self.conversion.is_ascii_uppercase();
        let size = number.abs();
        if !size.is_finite() {
            let word = if size.is_nan() { "nan" } else { "inf" };
            let word = if upper { word.to_uppercase() } else { word.to_owned() };
            return self.padded(sign, &word, false);
        }
        let precision = self.precision.unwrap_or(6);
        let digits = match self.conversion.to_ascii_lowercase() {
            'f' => format!("{size:.precision$}"),
            'e' => exponential(size, precision),
            'a' => hexadecimal(size, self.precision),
            _ => general(size, precision.max(1), self.has('#')),
        };
        let (prefix, digits) = match digits.strip_prefix("0x") {
            Some(rest) => (format!("{sign}0x"), rest.to_owned()),
            None => (sign.to_owned(), digits),
        };
        let text = self.padded(&prefix, &digits, self.has('0'));
        if upper { text.to_uppercase() } else { text }
    }

    fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.has('+'), self.has(' ')) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        }
    }

    fn padded(&self, prefix: &str, digits: &str, zero: bool) -> String {
        let missing = self.width.saturating_sub(prefix.len() + digits.chars().count());
        let Self { before, after, .. } = self;
        if self.has('-') {
            format!("{before}{prefix}{digits}{}{after}", " ".repeat(missing))
        } else if zero {
            format!("{before}{prefix}{}{digits}{after}", "0".repeat(missing))
        } else {
            format!("{before}{}{prefix}{digits}{after}", " ".repeat(missing))
        }
    }
}

/// The text before the first conversion, and the text after its percent sign.
fn conversion(text: &str) -> Option<(String, &str)> {
    let mut before = String::new();
    let mut rest = text;
    loop {
        let (plain, after) = rest.split_once('%')?;
        before.push_str(plain);
        match after.strip_prefix('%') {
            Some(after) => {
                before.push('%');
                rest = after;
            }
            None => return Some((before, after)),
        }
    }
}

/// `d.ddde+dd`, as `%e` prints.
fn exponential(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |size| ('-', size));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// The shorter of `%f` and `%e`, without zeros at the end: as `%g` prints.
fn general(number: f64, precision: usize, keep_zeros: bool) -> String {
    let text = exponential(number, precision - 1);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let size: i32 = exponent.parse().unwrap_or(0);
    let trim = |digits: &str| {
        if digits.contains('.') && !keep_zeros {
            return digits.trim_end_matches('0').trim_end_matches('.').to_owned();
        }
        digits.to_owned()
    };
    match usize::try_from(i64::try_from(precision).unwrap_or(i64::MAX) - 1 - i64::from(size)) {
        Ok(decimals) if size >= -4 => trim(&format!("{number:.decimals$}")),
        _ => format!("{}e{exponent}", trim(digits)),
    }
}

/// `0x1.8p+1`, as `%a` prints.
fn hexadecimal(number: f64, precision: Option<usize>) -> String {
    let bits = number.to_bits();
    let exponent = i64::try_from((bits >> 52) & 0x7FF).unwrap_or(0);
    let mut fraction = bits & ((1 << 52) - 1);
    let mut whole = u64::from(exponent != 0);
    let power = match (exponent, fraction) {
        (0, 0) => 0,
        (0, _) => -1022,
        _ => exponent - 1023,
    };
    if let Some(digits) = precision.filter(|digits| *digits < 13) {
        // Rounds half to even in the digits that are kept.
        let drop = 52 - 4 * digits;
        let all = (whole << 52) | fraction;
        let (kept, lost, half) = (all >> drop, all & ((1 << drop) - 1), 1u64 << (drop - 1));
        let rounded = kept + u64::from(lost > half || (lost == half && kept & 1 == 1));
        whole = rounded >> (4 * digits);
        fraction = (rounded << drop) & ((1 << 52) - 1);
    }
    let mut digits = format!("{fraction:013x}");
    match precision {
        Some(precision) => digits = format!("{digits:0<precision$}").chars().take(precision).collect(),
        None => digits.truncate(digits.trim_end_matches('0').len()),
    }
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{whole:x}{point}{digits}p{power:+}")
}

/// The real as `%.16G` prints it.
pub(super) fn shortest(number: f64) -> String {
    Format::parse("%.16G").map_or_else(|| number.to_string(), |format| format.real(number))
}

/// The integer that a text starts with, as C's strtol reads it. `None`: the text starts with no integer.
pub(super) fn leading_integer(text: &str) -> Option<i64> {
    leading_integer_and_rest(text).map(|(number, _)| number)
}

/// The integer that a text starts with, and the rest of the text. A number out of range becomes the nearest that is in
/// range.
pub(super) fn leading_integer_and_rest(text: &str) -> Option<(i64, &str)> {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{B}');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let len = digits.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(text.len() - digits.len() + len).filter(|_| len > 0)?;
    let out_of_range = if number.starts_with('-') { i64::MIN } else { i64::MAX };
    Some((number.parse().unwrap_or(out_of_range), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for (format, number, expected) in [
            ("%d", 5, "5"),
            ("%05d", 5, "00005"),
            ("x=%d y", 5, "x=5 y"),
            ("%-5d|", 5, "5    |"),
            ("%+d", 5, "+5"),
            ("%d", 4_294_967_296, "0"),
            ("%lld", 4_294_967_297, "4294967297"),
            ("%u", -5, "4294967291"),
            ("%#x", 255, "0xff"),
            ("%X", 255, "FF"),
            ("%d%%", 5, "5%"),
            ("%.3d", -5, "-005"),
        ] {
            assert_eq!(Format::parse(format).unwrap().integer(number), expected, "{format}");
        }
    }

    #[test]
    fn reals() {
        for (format, number, expected) in [
            ("%f", 5.0, "5.000000"),
            ("%.2f", 5.123_456, "5.12"),
            ("%e", 5.0, "5.000000e+00"),
            ("%10.3f|", 5.0, "     5.000|"),
            ("%g", 1e20, "1e+20"),
            ("%g", 0.0001, "0.0001"),
            ("%g", 123_456_789.0, "1.23457e+08"),
            ("%E", 0.000_01, "1.000000E-05"),
            ("%a", 5.0, "0x1.4p+2"),
            ("%a", 0.0, "0x0p+0"),
            ("%.1a", 1.97, "0x2.0p+0"),
            ("%.0f", 5.0, "5"),
        ] {
            assert_eq!(Format::parse(format).unwrap().real(number), expected, "{format}");
        }
        assert_eq!(shortest(1.0 / 3.0), "0.3333333333333333");
        assert_eq!(shortest(1e300), "1E+300");
        assert_eq!(shortest(-0.0), "-0");
        assert_eq!(shortest(f64::INFINITY), "INF");
    }

    #[test]
    fn strings() {
        assert_eq!(Format::parse("[%-5.2s]").unwrap().string("foo"), "[fo   ]");
        assert_eq!(Format::parse("%.3s").unwrap().string("aéé"), "aé");
    }

    #[test]
    fn what_is_no_format() {
        for text in ["", "abc", "%d,%d", "%v", "%*d", "%%", "%"] {
            assert_eq!(Format::parse(text), None, "{text}");
        }
    }

    #[test]
    fn leading_integers() {
        assert_eq!(leading_integer(" 7x"), Some(7));
        assert_eq!(leading_integer("-99999999999999999999"), Some(i64::MIN));
        assert_eq!(leading_integer("x"), None);
        assert_eq!(leading_integer("+"), None);
    }
}
