//! Reads any JSON as an HTCJob in a list. It must not panic, nor take the others in the list with it.

use api::HTCJob;
use controller::kinds::job;

use crate::objects::among_others;

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    among_others(text).as_ref().and_then(|job: &HTCJob| job::facts(job));
}
