//! The final ads of ends.

use classad::{Ad, join_arguments};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use model::pool::Ended;
use submit::streams::unwrapped;

/// The final ad of an end, with what the template of the job's pods tells.
pub(super) fn ad(ended: &Ended, template: Option<&PodTemplateSpec>) -> Ad {
    let mut ad = ended.ad();
    if let Some(template) = template {
        set_template(&mut ad, template);
    }
    ad
}

/// Puts into the ad of a job what the template of its pods tells: `ContainerImage`, `Cmd`, and the arguments. As after condor_submit,
/// the arguments are `Args` if spaces alone separate them, and else `Arguments`.
pub fn set_template(ad: &mut Ad, template: &PodTemplateSpec) {
    let Some(container) = template.spec.as_ref().and_then(|spec| spec.containers.first()) else { return };
    if let Some(image) = &container.image
        && !ad.contains("ContainerImage")
    {
        ad.set("ContainerImage", image.as_str());
    }
    let command = container.command.as_deref().unwrap_or_default();
    // A shell that only opens files for the program's streams is not the job's program, and is left out.
    let command = unwrapped(command).map_or(command, |(_, program)| program);
    // Without a command, the image's entry point gets the words. HTCondor's docker universe hands the entry point a job's Cmd and
    // arguments, too.
    let mut words = command.iter().chain(container.args.iter().flatten()).cloned();
    if let Some(program) = words.next() {
        ad.set("Cmd", program.as_str());
        let arguments: Vec<String> = words.collect();
        let plain = |word: &String| !word.is_empty() && !word.contains([' ', '\t', '\r', '\n', '\'', '"']);
        if arguments.iter().all(plain) && !arguments.is_empty() {
            ad.set("Args", arguments.join(" ").as_str());
        } else if !arguments.is_empty() {
            ad.set("Arguments", join_arguments(&arguments).as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_program_is_the_first_word_of_the_container() {
        for (container, expected) in [
            (json!({"command": ["/bin/sim"], "args": ["a", "b"]}), ("\"/bin/sim\"", "\"a b\"")),
            (json!({"command": ["/bin/sim", "a b"]}), ("\"/bin/sim\"", "undefined")),
            (json!({"args": ["/bin/sim", "a"]}), ("\"/bin/sim\"", "\"a\"")),
            (json!({}), ("undefined", "undefined")),
        ] {
            let mut container = container;
            container["name"] = "main".into();
            let template = serde_json::from_value(json!({"spec": {"containers": [container]}})).unwrap();
            let mut ad = Ad::new();
            set_template(&mut ad, &template);
            let value = |name: &str| ad.get(name).map_or("undefined".to_owned(), ToString::to_string);
            assert_eq!((&*value("Cmd"), &*value("Args")), expected, "{container}");
        }
    }
}
