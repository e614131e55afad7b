//! Commands whose value is the value of an attribute.

use super::{Job, Outcome};
use crate::commands::{COMMANDS, Form};
use crate::queue;
use crate::world::World;

impl Job<'_, '_> {
    pub(super) fn set_simple(&mut self) -> Outcome {
        let mut former = None;
        for command in COMMANDS.iter().filter(|command| command.form != Form::Special) {
            // A second name for an attribute is not looked at if the first one was given.
            if former == Some(command.attribute) {
                continue;
            }
            let Some(given) = self.given(command.name, Some(command.attribute))? else { continue };
            former = Some(command.attribute);
            let attribute = command.attribute;
            match command.form {
                Form::Special => {}
                Form::Expression => self.assign(attribute, &given)?,
                Form::Text => self.set(attribute, given.as_str()),
                Form::Quoted => self.set(attribute, given.without_quotes()),
                Form::List => {
                    let list = queue::words(given.as_str()).collect::<Vec<_>>().join(",");
                    self.set(attribute, list);
                }
                Form::Path => {
                    let path = World::full_path(&self.directory, given.without_quotes());
                    self.set(attribute, path);
                }
                Form::Boolean => match self.scope.boolean(given.as_str()) {
                    Some(truth) => self.set(attribute, truth),
                    None => {
                        return Err(
                            self.fault(&given, format!("'{}' is neither true nor false", given.as_str()))
                        );
                    }
                },
                Form::Integer | Form::Count => match self.scope.integer(given.as_str()) {
                    Some(number) if number < 0 && command.form == Form::Count => {
                        return Err(self.fault(&given, format!("{number} is negative")));
                    }
                    Some(number) => self.set(attribute, number),
                    None => return Err(self.fault(&given, format!("'{}' is no integer", given.as_str()))),
                },
            }
        }
        Ok(())
    }
}
