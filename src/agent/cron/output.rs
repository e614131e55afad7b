//! The output of a cron job: lines `Attribute = expression`, and lines that begin with `-`, which end an ad. Pure.
//!
//! Source: the manual, "Startd Cron and Schedd Cron", "Job output": `- [name] [update: bool]`.

use std::collections::BTreeMap;

/// The most bytes of a line.
const MAX_LINE: usize = 4096;
/// The most bytes of an ad.
const MAX_AD: usize = 64 * 1024;
/// The most attributes of an ad.
const MAX_ATTRIBUTES: usize = 128;
/// The most bytes of a tag.
const MAX_TAG: usize = 64;
/// The most characters of a line that a message repeats.
const MAX_SHOWN: usize = 40;

/// An ad that a job has told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputAd {
    /// The tag that tells the job's ads apart; none if the job has one ad.
    pub(super) tag: Option<String>,
    /// Whether the report is to tell of the ad at once; none if the job leaves that to the configuration.
    pub(super) update: Option<bool>,
    /// The attributes with their expressions. Two names differ in more than case.
    pub(super) attributes: BTreeMap<String, String>,
}

/// The output of one run.
#[derive(Debug)]
pub(super) struct Output {
    prefix: String,
    /// The line that is not complete yet.
    line: Vec<u8>,
    /// The bytes of the ad so far.
    bytes: usize,
    attributes: BTreeMap<String, String>,
    malformed: Option<String>,
}

/// The output is more than the agent takes. The run is killed.
pub(super) type TooMuch = String;

impl Output {
    /// Nothing yet. The prefix stands before the name of each attribute.
    pub(super) fn new(prefix: &str) -> Self {
        let (line, attributes) = (Vec::new(), BTreeMap::new());
        Self { prefix: prefix.to_owned(), line, bytes: 0, attributes, malformed: None }
    }

    /// Takes more output. Returns the ads that have ended.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<OutputAd>, TooMuch> {
        let mut told = Vec::new();
        for byte in bytes {
            self.bytes += 1;
            if self.bytes > MAX_AD {
                return Err(format!("an ad has more than {MAX_AD} bytes"));
            }
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                told.extend(self.line(&String::from_utf8_lossy(&line))?);
            } else if self.line.len() == MAX_LINE {
                return Err(format!("a line has more than {MAX_LINE} bytes"));
            } else {
                self.line.push(*byte);
            }
        }
        Ok(told)
    }

    /// The program has ended. Returns the ad that the end of the output ends.
    pub(super) fn end(&mut self) -> Result<Option<OutputAd>, TooMuch> {
        let line = std::mem::take(&mut self.line);
        let ended = self.line(&String::from_utf8_lossy(&line))?;
        Ok(ended.or_else(|| self.finish("")))
    }

    /// The first line that could not be read, as a message.
    pub(super) fn malformed(&self) -> Option<&str> {
        self.malformed.as_deref()
    }

    fn line(&mut self, line: &str) -> Result<Option<OutputAd>, TooMuch> {
        let line = line.trim();
        if let Some(arguments) = line.strip_prefix('-') {
            return Ok(self.finish(arguments));
        }
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let attribute = line.split_once('=').map(|(name, expression)| (name.trim(), expression.trim()));
        match attribute.filter(|(name, expression)| is_name(name) && !expression.is_empty()) {
            Some((name, expression)) => self.set(format!("{}{name}", self.prefix), expression)?,
            None if self.malformed.is_none() => {
                let shown: String = line.chars().take(MAX_SHOWN).collect();
                self.malformed =
                    Some(format!("the output has {shown:?}; Attribute = expression was expected"));
            }
            None => {}
        }
        Ok(None)
    }

    fn set(&mut self, name: String, expression: &str) -> Result<(), TooMuch> {
        self.attributes.retain(|known, _| !known.eq_ignore_ascii_case(&name));
        if self.attributes.len() == MAX_ATTRIBUTES {
            return Err(format!("an ad has more than {MAX_ATTRIBUTES} attributes"));
        }
        self.attributes.insert(name, expression.to_owned());
        Ok(())
    }

    /// Ends an ad. An ad without attributes replaces nothing, as in HTCondor.
    fn finish(&mut self, arguments: &str) -> Option<OutputAd> {
        self.bytes = 0;
        let attributes = std::mem::take(&mut self.attributes);
        if attributes.is_empty() {
            return None;
        }
        let mut words = arguments.split_ascii_whitespace().peekable();
        let tag = words.next_if(|word| !word.contains(':')).map(|tag| tag.chars().take(MAX_TAG).collect());
        Some(OutputAd { tag, update: words.find_map(update), attributes })
    }
}

/// Reads `update:BOOL`. Without a value that is false, the word asks for an update.
fn update(word: &str) -> Option<bool> {
    let (name, value) = word.split_once(':').unwrap_or((word, ""));
    let no = ["false", "f", "0", "no"].iter().any(|no| value.eq_ignore_ascii_case(no));
    name.eq_ignore_ascii_case("update").then_some(!no)
}

/// Whether this is the name of an attribute: letters, digits and `_`, and no digit first.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(plain) && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(tag: Option<&str>, update: Option<bool>, attributes: &[(&str, &str)]) -> OutputAd {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        OutputAd { tag: tag.map(str::to_owned), update, attributes: attributes.iter().map(owned).collect() }
    }

    fn read(prefix: &str, text: &str) -> Vec<OutputAd> {
        let mut output = Output::new(prefix);
        let mut all = output.push(text.as_bytes()).unwrap();
        all.extend(output.end().unwrap());
        all
    }

    #[test]
    fn output_is_read_as_the_manual_says() {
        for (text, expected) in [
            ("", vec![]),
            ("A = 1\nB=\"x=y\"\n", vec![told(None, None, &[("A", "1"), ("B", "\"x=y\"")])]),
            // The end of the output ends an ad, even within a line.
            ("A = 1", vec![told(None, None, &[("A", "1")])]),
            // The manual's example.
            (
                "Value=1\nSlotId=1\n-s1\nValue=2\nSlotId=2\n-s2\nValue=10\n- update:true\n",
                vec![
                    told(Some("s1"), None, &[("SlotId", "1"), ("Value", "1")]),
                    told(Some("s2"), None, &[("SlotId", "2"), ("Value", "2")]),
                    told(None, Some(true), &[("Value", "10")]),
                ],
            ),
            ("A = 1\n- tag update:false\n", vec![told(Some("tag"), Some(false), &[("A", "1")])]),
            ("A = 1\n- update\n", vec![told(Some("update"), None, &[("A", "1")])]),
            ("A = 1\n- t update\n", vec![told(Some("t"), Some(true), &[("A", "1")])]),
            // Two of a name: the last counts, whatever its case.
            ("A = 1\na = 2\n-\n", vec![told(None, None, &[("a", "2")])]),
            // An ad without attributes replaces nothing.
            ("-\n\n# nothing\n- tag\n", vec![]),
            ("\r\n  A =  TARGET.x + 1 \r\n--\r\n", vec![told(Some("-"), None, &[("A", "TARGET.x + 1")])]),
        ] {
            assert_eq!(read("", text), expected, "{text:?}");
        }
        assert_eq!(
            read("xyz_", "abc = 1\nSlotId = 2\n"),
            [told(None, None, &[("xyz_SlotId", "2"), ("xyz_abc", "1")])]
        );
    }

    #[test]
    fn lines_that_are_no_attributes_are_told_and_the_others_count() {
        let mut output = Output::new("");
        output.push(b"hello\n1A = 2\nA B = 3\nC =\nD = 4\n").unwrap();
        assert_eq!(output.malformed(), Some("the output has \"hello\"; Attribute = expression was expected"));
        assert_eq!(output.end(), Ok(Some(told(None, None, &[("D", "4")]))));
        for line in ["1A = 2", "A B = 3", "C =", "= 1", "ä = 1"] {
            let mut output = Output::new("");
            output.push(format!("{line}\n").as_bytes()).unwrap();
            assert!(output.malformed().is_some() && output.end() == Ok(None), "{line}");
        }
    }

    #[test]
    fn output_is_bounded() {
        let many =
            |count: usize| (0..count).map(|number| format!("A{number} = 1\n")).collect::<Vec<_>>().concat();
        let fails = |text: String| Output::new("").push(text.as_bytes());
        assert_eq!(
            fails(format!("A = {}", "1".repeat(5000))),
            Err("a line has more than 4096 bytes".to_owned())
        );
        assert_eq!(fails("# x\n".repeat(20_000)), Err("an ad has more than 65536 bytes".to_owned()));
        assert_eq!(fails(many(129)), Err("an ad has more than 128 attributes".to_owned()));
        assert!(fails(many(128)).is_ok());
        assert!(fails(format!("{}-\n", many(100)).repeat(100)).is_ok(), "each ad has its own bounds");
    }

    proptest! {
        #[test]
        fn no_output_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut output = Output::new("p_");
            let _ = (output.push(&bytes), output.end());
        }
    }
}
