//! Expands any text with a few definitions.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use condor_config::{Config, Host, Reader, Source};

static CONFIG: LazyLock<Config> = LazyLock::new(|| {
    let text = "A = $(B)$(C:x)\nB = 1\nC = $(A)\nD = $(\nE = )\nF = $(D)B$(E)\nL = a,b,$(B)\nP = \"/a/b.c\"\nG = $(G2)$(G2)\n\
                G2 = $(G3)$(G3)\nG3 = $INT(B)$INT(B)\n";
    let host = Host { seed: Some(1), environment: Some(BTreeMap::new()), ..Host::none() };
    Reader::new(host).read(&[Source::new("fuzz", text)]).config
});

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    let _ = CONFIG.expand(text);
}
