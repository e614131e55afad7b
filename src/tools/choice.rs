//! Which ads a tool shows.

use classad::{Ad, Env, Expr};

/// Reads ads of a file: in the long form with blank lines between, or in the new syntax in brackets, which may stand in a list.
///
/// # Errors
/// When the text is neither: a message that tells where.
pub fn reads(text: &str) -> Result<Vec<Ad>, String> {
    let start = text.trim_start();
    if start.starts_with(['[', '{']) {
        let list = if start.starts_with('{') { start.to_owned() } else { format!("{{{start}}}") };
        let list = Expr::parse(&list).map_err(|error| error.to_string())?;
        let classad::Value::List(values) = list.eval(None, None, &Env::at(0)) else {
            return Err("this is no list of ads".to_owned());
        };
        let ads = values.iter().map(|value| match value {
            classad::Value::Ad(ad) => Ok(ad.clone()),
            other => Err(format!("{other} is no ad")),
        });
        return ads.collect();
    }
    Ad::parse_long_stream(text).map_err(|error| error.to_string())
}

/// A condition on ads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constraint(Vec<Expr>);

impl Constraint {
    /// Adds a condition that must hold too.
    ///
    /// # Errors
    /// When the text is no expression: a message that tells where.
    pub(crate) fn and(&mut self, text: &str) -> Result<(), String> {
        self.0.push(Expr::parse_old(text).map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Whether all conditions are true of the ad. A number other than 0 is true, as for the schedd.
    pub(crate) fn holds(&self, ad: &Ad, env: &Env) -> bool {
        self.0.iter().all(|expr| expr.eval(Some(ad), None, env).as_bool_equiv() == Some(true))
    }

    /// Whether a condition names this attribute of the ad.
    pub(crate) fn names(&self, attribute: &str) -> bool {
        self.0.iter().any(|expr| {
            let references = expr.references();
            references
                .my
                .iter()
                .chain(&references.bare)
                .any(|name| name.as_str().eq_ignore_ascii_case(attribute))
        })
    }

    /// Whether there is no condition.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
