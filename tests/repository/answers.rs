//! Every answer of the API server is decoded as an `Item` by the controller, the webhook, the agent and the plugin. kube's client logs the whole text
//! of an answer that it cannot decode, and an `Item` takes any JSON.

#![allow(clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry of a folder").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn answers_are_decoded_as_items() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for folder in ["src/answers", "src/controller", "src/webhook", "src/agent"] {
        sources(&root.join(folder), &mut all);
    }
    all.push(root.join("src/plugin/cluster.rs"));
    let (mut wrong, mut right) = (Vec::new(), 0);
    for path in &all {
        let text = fs::read_to_string(path).expect("a source file");
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default().replace("Api::<", "Api<");
            for after in code.split("Api<").skip(1) {
                // The plugin asks this for its URL only.
                let url = after.starts_with("K>::all(") && code.contains("resource_url()");
                // Nobody but admins and the operator writes the Secret and the configurations of the webhook.
                let keeper = path.components().any(|part| part.as_os_str() == "keeper");
                if after.starts_with("Item<") || after.starts_with("Meta>") || url || keeper {
                    right += 1;
                } else {
                    wrong.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty() && right > 10, "{wrong:#?}");
}
