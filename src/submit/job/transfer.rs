//! File transfer. Slotwright moves no files; the attributes are those of condor_submit.

use super::{GivenValue, Job, Outcome, Universe};
use crate::world::scheme;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Should {
    Yes,
    No,
    IfNeeded,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Exit,
    ExitOrEvict,
    Success,
    None,
}

impl Job<'_, '_> {
    pub(super) fn set_transfer(&mut self) -> Outcome {
        let mut size = 0;
        let mut inputs = None;
        if let Some(given) = self.given("transfer_input_files", Some("TransferInputFiles"))? {
            inputs = Some(list(&given));
        }
        if let Some(given) = self.given("transfer_common_input", Some("CommonInputFiles"))? {
            let common = list(&given).join(",");
            self.set("CommonInputFiles", common);
        }
        for file in inputs.iter().flatten() {
            size += self.size(file);
        }
        if self.memory.universe == Universe::Container {
            self.transfer_image(&mut inputs, &mut size)?;
        }
        if self.get("TransferIn").is_none() || self.is_true("TransferIn") {
            let input = self.string("In").unwrap_or_default();
            if !input.is_empty() {
                size += self.size(&input);
            }
        }
        let outputs =
            self.given("transfer_output_files", Some("TransferOutputFiles"))?.map(|given| list(&given));
        let should = self.set_when(inputs.is_some(), outputs.is_some())?;
        self.set_usage(size)?;
        if should != Should::No {
            if let Some(inputs) = inputs.filter(|inputs| !inputs.is_empty()) {
                self.set("TransferInput", inputs.join(","));
            }
            if let Some(given) = self.given("public_input_files", Some("PublicInputFiles"))? {
                let public = list(&given).join(",");
                self.set("PublicInputFiles", public);
            }
            if let Some(outputs) = outputs {
                self.set("TransferOutput", outputs.join(","));
            }
        } else if self.boolean("transfer_executable", Some("TransferExecutable"))? == Some(true) {
            return Err(
                self.missing("transfer_executable = true needs should_transfer_files = yes or if_needed")
            );
        }
        if let Some(given) = self.given("transfer_output_remaps", Some("TransferOutputRemaps"))? {
            self.set("TransferOutputRemaps", given.without_quotes());
        }
        Ok(())
    }

    /// Reads should_transfer_files and when_to_transfer_output, which must agree.
    fn said_when(&mut self, inputs: bool, outputs: bool) -> Outcome<(Should, When)> {
        let said = self.given("ShouldTransferFiles", Some("should_transfer_files"))?;
        let mut should = match &said {
            Some(given) => should_of(given.as_str()).ok_or_else(|| {
                self.fault(given, format!("'{}' is neither YES, NO nor IF_NEEDED", given.as_str()))
            })?,
            None => Should::IfNeeded,
        };
        if let (Some(given), Should::No, true) = (&said, should, inputs || outputs) {
            let which = if inputs { "transfer_input_files" } else { "transfer_output_files" };
            return Err(self.fault(given, format!("{which} contradicts this: leave one of them out")));
        }
        let when_said = self.given("WhenToTransferOutput", Some("when_to_transfer_output"))?;
        let mut when = match &when_said {
            Some(given) => when_of(given.as_str()).ok_or_else(|| {
                self.fault(
                    given,
                    format!("'{}' is neither ON_EXIT, ON_EXIT_OR_EVICT nor ON_SUCCESS", given.as_str()),
                )
            })?,
            None => When::Exit,
        };
        if said.is_some() && when_said.is_none() && should == Should::No {
            when = When::None;
        }
        if (should == Should::No) != (when == When::None) {
            let message = "should_transfer_files and when_to_transfer_output contradict each other: leave one of them out";
            return Err(when_said
                .or(said)
                .map_or_else(|| self.missing(message), |given| self.fault(&given, message)));
        }
        if when == When::ExitOrEvict && should == Should::IfNeeded {
            match &said {
                None => should = Should::Yes,
                Some(given) => {
                    return Err(self.fault(given, "ON_EXIT_OR_EVICT needs should_transfer_files = YES"));
                }
            }
        }
        Ok((should, when))
    }

    /// Sets ShouldTransferFiles and WhenToTransferOutput.
    fn set_when(&mut self, inputs: bool, outputs: bool) -> Outcome<Should> {
        let (should, when) = self.said_when(inputs, outputs)?;
        self.set(
            "ShouldTransferFiles",
            match should {
                Should::Yes => "YES",
                Should::No => "NO",
                Should::IfNeeded => "IF_NEEDED",
            },
        );
        if should != Should::No {
            self.set(
                "WhenToTransferOutput",
                match when {
                    When::Exit => "ON_EXIT",
                    When::ExitOrEvict => "ON_EXIT_OR_EVICT",
                    When::Success => "ON_SUCCESS",
                    When::None => "NONE",
                },
            );
        }
        let domain = self.world.file_system_domain.clone();
        if should != Should::Yes && !self.has("FileSystemDomain") && !domain.is_empty() {
            self.set("FileSystemDomain", domain);
        }
        Ok(should)
    }

    fn set_usage(&mut self, size: i64) -> Outcome {
        if let Some(given) = self.given("disk_usage", Some("DiskUsage"))? {
            let size = self.kib(&given)?;
            self.set("DiskUsage", size);
            return Ok(());
        }
        let executable = self.number("ExecutableSize");
        self.set("TransferInputSizeMB", (executable + size + 1023) / 1024);
        self.set("DiskUsage", executable + size);
        Ok(())
    }

    /// An image in a file or a directory is transferred as a file is.
    fn transfer_image(&mut self, inputs: &mut Option<Vec<String>>, size: &mut i64) -> Outcome {
        if self.has("TransferContainer") && !self.is_true("TransferContainer") {
            self.set("ContainerImageSource", "local");
            return Ok(());
        }
        let Some(given) = self.given("container_image", Some("ContainerImage"))? else { return Ok(()) };
        let image = given.as_str().to_owned();
        if let Some(scheme) =
            ["docker", "oras"].into_iter().find(|scheme| image.starts_with(&format!("{scheme}://")))
        {
            self.set("ContainerImageSource", scheme);
            return Ok(());
        }
        if image.starts_with(SHARED) {
            self.set("ContainerImageSource", "local");
            return Ok(());
        }
        inputs.get_or_insert_default().push(image.clone());
        *size += self.size(&image);
        let path = image.strip_suffix('/').unwrap_or(&image);
        self.set("ContainerImage", path.rsplit('/').next().unwrap_or(path));
        self.set("ContainerImageFullPath", image.as_str());
        self.set("ContainerImageSource", path.split_once(':').map_or("cedar", |(scheme, _)| scheme));
        Ok(())
    }
}

/// HTCondor's default of CONTAINER_SHARED_FS: images there are on each machine.
const SHARED: &str = "/cvmfs";

/// The names of files between commas.
fn list(given: &GivenValue) -> Vec<String> {
    let names = given.without_quotes().split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

fn should_of(text: &str) -> Option<Should> {
    let words = [
        ("yes", Should::Yes),
        ("true", Should::Yes),
        ("always", Should::Yes),
        ("no", Should::No),
        ("false", Should::No),
        ("never", Should::No),
        ("if_needed", Should::IfNeeded),
        ("auto", Should::IfNeeded),
    ];
    words.into_iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, should)| should)
}

fn when_of(text: &str) -> Option<When> {
    let words = [
        ("on_exit", When::Exit),
        ("onexit", When::Exit),
        // The manual's word for no transfer is ON_EXIT to condor_submit, which contradicts should_transfer_files = no.
        ("never", When::Exit),
        ("on_exit_or_evict", When::ExitOrEvict),
        ("always", When::ExitOrEvict),
        ("on_success", When::Success),
        ("onsuccess", When::Success),
        ("none", When::None),
        ("null", When::None),
    ];
    words.into_iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, when)| when)
}

/// The scheme of a URL in capital or small letters, as a transfer plugin is named.
pub(super) fn method(name: &str) -> Option<String> {
    let scheme = scheme(name)?;
    Some(scheme.rsplit(['+', '-', '.']).next().unwrap_or(scheme).to_owned())
}
