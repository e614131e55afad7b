//! The part of `JSONPath` that printer columns use: fields, quoted fields, indexes, slices, wildcards and filters.

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    Slice(i64, Option<i64>),
    All,
    /// The value itself and every value below it.
    Descend,
    Filter {
        left: Vec<Step>,
        test: Option<(Test, Value)>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Parses a path such as `.spec.x`, with or without braces and a leading `$`. Returns `None` if the path is malformed
    /// or uses other parts of `JSONPath`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        let text = text.strip_prefix('$').unwrap_or(text);
        steps(text).map(Self)
    }

    /// All values to which the path leads.
    pub(super) fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        follow(&self.0, value)
    }
}

fn steps(mut rest: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    while !rest.is_empty() {
        rest = if let Some(tail) = rest.strip_prefix("..") {
            steps.push(Step::Descend);
            if tail.starts_with('[') { tail } else { field(tail, &mut steps)? }
        } else if let Some(tail) = rest.strip_prefix('.') {
            if tail.is_empty() || tail.starts_with('[') { tail } else { field(tail, &mut steps)? }
        } else if let Some(tail) = rest.strip_prefix('[') {
            let end = closing(tail)?;
            let (inside, after) = tail.split_at_checked(end)?;
            steps.push(bracket(inside.trim())?);
            after.strip_prefix(']')?
        } else {
            return None;
        };
    }
    Some(steps)
}

/// Parses a name without quotes, in which dots are escaped with a backslash. Returns the rest of the text.
fn field<'t>(text: &'t str, steps: &mut Vec<Step>) -> Option<&'t str> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    let mut end = text.len();
    while let Some((i, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            '.' | '[' => {
                end = i;
                break;
            }
            c => name.push(c),
        }
    }
    match name.as_str() {
        "" => return None,
        "*" => steps.push(Step::All),
        _ => steps.push(Step::Field(name)),
    }
    text.get(end..)
}

/// The index of the bracket that closes the one before `text`. Brackets in quotes do not count.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(i),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn unquote(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|q| text.strip_prefix(q)?.strip_suffix(q))
}

fn bracket(inside: &str) -> Option<Step> {
    if inside == "*" {
        return Some(Step::All);
    }
    if let Some(name) = unquote(inside) {
        return Some(Step::Field(name.to_owned()));
    }
    if let Some(filter) = inside.strip_prefix("?(").and_then(|f| f.strip_suffix(')')) {
        return self::filter(filter.trim());
    }
    if let Some((from, to)) = inside.split_once(':') {
        let number = |t: &str, or: i64| if t.is_empty() { Some(or) } else { t.parse().ok() };
        let to = if to.is_empty() { None } else { Some(to.parse().ok()?) };
        return Some(Step::Slice(number(from, 0)?, to));
    }
    inside.parse().ok().map(Step::Index)
}

fn filter(text: &str) -> Option<Step> {
    let tests = [
        ("==", Test::Equal),
        ("!=", Test::NotEqual),
        ("<=", Test::LessOrEqual),
        (">=", Test::GreaterOrEqual),
        ("<", Test::Less),
        (">", Test::Greater),
    ];
    let body = text.strip_prefix('@')?;
    for (symbol, test) in tests {
        if let Some((left, right)) = body.split_once(symbol) {
            let right = right.trim();
            let value = match unquote(right) {
                Some(text) => Value::from(text),
                None => serde_json::from_str(right).ok()?,
            };
            return Some(Step::Filter { left: steps(left.trim())?, test: Some((test, value)) });
        }
    }
    Some(Step::Filter { left: steps(body.trim())?, test: None })
}

fn follow<'v>(steps: &[Step], value: &'v Value) -> Vec<&'v Value> {
    let mut now = vec![value];
    for step in steps {
        now = now.into_iter().flat_map(|v| one(step, v)).collect();
    }
    now
}

fn one<'v>(step: &Step, value: &'v Value) -> Vec<&'v Value> {
    match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::All => children(value),
        Step::Descend => {
            let mut all = vec![value];
            all.extend(children(value).into_iter().flat_map(|child| one(step, child)));
            all
        }
        Step::Index(i) => {
            let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
            usize::try_from(from_end(*i, list.len())).ok().and_then(|i| list.get(i)).into_iter().collect()
        }
        Step::Slice(from, to) => {
            let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let at = |i: i64| usize::try_from(from_end(i, list.len()).max(0)).unwrap_or(0);
            let end = to.map_or(list.len(), at);
            list.iter().take(end).skip(at(*from)).collect()
        }
        Step::Filter { left, test } => {
            children(value).into_iter().filter(|item| holds(left, test.as_ref(), item)).collect()
        }
    }
}

fn from_end(i: i64, length: usize) -> i64 {
    if i < 0 { i.saturating_add(i64::try_from(length).unwrap_or(i64::MAX)) } else { i }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    }
}

fn holds(left: &[Step], test: Option<&(Test, Value)>, item: &Value) -> bool {
    let found = follow(left, item);
    let Some((test, wanted)) = test else { return !found.is_empty() };
    let Some(found) = found.first() else { return false };
    let order = match (found.as_f64(), wanted.as_f64(), found.as_str(), wanted.as_str()) {
        (Some(a), Some(b), ..) => a.partial_cmp(&b),
        (.., Some(a), Some(b)) => Some(a.cmp(b)),
        _ => None,
    };
    match test {
        Test::Equal => *found == wanted,
        Test::NotEqual => *found != wanted,
        Test::Less => order.is_some_and(std::cmp::Ordering::is_lt),
        Test::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
        Test::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
        Test::GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
    }
}
