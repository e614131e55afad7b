//! Requirements: the user's expression, and the clauses that condor_submit adds.

use std::collections::BTreeSet;

use classad::{Name, Value};

use super::program::is_sif;
use super::transfer::method;
use super::{Job, Outcome, Universe};

/// Attributes of a machine that an expression looks at.
#[derive(Default)]
struct Machine(BTreeSet<Name>);

impl Machine {
    fn has(&self, name: &str) -> bool {
        self.0.contains(&Name::from(name))
    }

    fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }
}

impl Job<'_, '_> {
    pub(super) fn set_requirements(&mut self) -> Outcome {
        let given = self.given("requirements", None)?;
        self.program.requirements = given.as_ref().map(|given| given.as_str().to_owned());
        if let Some(forced) = self.given("MY.Requirements", None)? {
            self.program.requirements = Some(forced.as_str().to_owned());
            if let Some(given) = given {
                self.warn(&given, "requirements", "MY.Requirements overrides this: leave one of them out");
            }
            return Ok(());
        }
        let mut machine = Machine::default();
        let mut clauses = Vec::new();
        if let Some(given) = &given {
            let references = self.parse(given)?.references();
            let circular = [&references.my, &references.bare, &references.target];
            if circular.into_iter().flatten().any(|name| name.is("Requirements")) {
                return Err(self.fault(given, "Requirements refers to itself: did you mean $(Requirements)?"));
            }
            // HTCondor looks at the expression alone, in which only these two are the job's: any other attribute that is
            // asked of MY counts as the machine's, too.
            let own = references.bare.into_iter().chain(references.my);
            let other = own.filter(|name| !name.is("RequestMemory") && !name.is("VM_CkptMac"));
            machine.0 = references.target.into_iter().chain(other).collect();
            clauses.push(format!("({})", given.as_str()));
        }
        self.platform_clauses(&machine, &mut clauses);
        self.resource_clauses(&machine, &mut clauses);
        if self.is_true("EncryptExecuteDirectory") && !machine.has("EncryptExecuteDirectory") {
            clauses.push("TARGET.HasEncryptExecuteDirectory".to_owned());
        }
        self.transfer_clauses(&machine, &mut clauses)?;
        self.late_clauses(&machine, &mut clauses)?;
        self.assign_text("Requirements", &clauses.join(" && "))
    }

    fn platform_clauses(&self, machine: &Machine, clauses: &mut Vec<String>) {
        if !machine.has("Arch") {
            clauses.push(format!("(TARGET.Arch == \"{}\")", self.world.arch));
        }
        match self.memory.universe {
            Universe::Vanilla => {
                let systems =
                    ["OpSys", "OpSysAndVer", "OpSysLongName", "OpSysShortName", "OpSysName", "OpSysLegacy"];
                if !machine.has_any(&systems) {
                    clauses.push(format!("(TARGET.OpSys == \"{}\")", self.world.op_sys));
                }
            }
            Universe::Docker => {
                clauses.push("TARGET.HasDocker".to_owned());
                let network = self.string("DockerNetworkType").unwrap_or_default();
                if !["", "host", "none", "nat"].contains(&network.as_str()) {
                    clauses.push("StringListMember(My.DockerNetworkType, TARGET.DockerNetworks)".to_owned());
                }
            }
            Universe::Container => {
                clauses.push("TARGET.HasContainer".to_owned());
                let image = self.string("ContainerImage").unwrap_or_default();
                clauses.push(
                    match image.as_str() {
                        _ if self.has("DockerImage") => "TARGET.HasDockerURL",
                        image if image.starts_with("docker:") => "TARGET.HasDockerURL",
                        image if is_sif(image) => "TARGET.HasSIF",
                        _ => "TARGET.HasSandboxImage",
                    }
                    .to_owned(),
                );
            }
        }
    }

    /// Whether the job requests more than so much. An expression counts as more.
    fn requests_more(&self, attribute: &str, than: f64) -> bool {
        match self.get(attribute).map(|expr| expr.as_literal().and_then(Value::as_number)) {
            None => false,
            Some(None) => true,
            Some(Some(number)) => number > than,
        }
    }

    fn resource_clauses(&self, machine: &Machine, clauses: &mut Vec<String>) {
        if !self.has("RequestDisk") {
            if !machine.has("Disk") {
                clauses.push("(TARGET.Disk >= DiskUsage)".to_owned());
            }
        } else if machine.has("Disk") {
            clauses.push("(TARGET.Disk >= RequestDisk)".to_owned());
        } else if self.requests_more("RequestDisk", 0.0) {
            let version = "versionGE(split(TARGET.CondorVersion)[1], \"25.12.0\")";
            clauses.push(format!("({version} || (TARGET.Disk >= RequestDisk))"));
        }
        if self.requests_more("RequestMemory", 1.0) {
            clauses.push("(TARGET.Memory >= RequestMemory)".to_owned());
        }
        if !machine.has("Cpus") && self.requests_more("RequestCpus", 1.0) {
            clauses.push("(TARGET.Cpus >= RequestCpus)".to_owned());
        }
        let requested = self.own.unsorted().map(|(name, _)| name);
        let requested =
            requested.chain(self.cluster.iter().flat_map(|ad| ad.unsorted().map(|(name, _)| name)));
        let requested: BTreeSet<&Name> = requested
            .filter(|name| name.as_str().get(..7).is_some_and(|start| start.eq_ignore_ascii_case("Request")))
            .filter(|name| {
                !["RequestCpus", "RequestDisk", "RequestMemory"].iter().any(|known| name.is(known))
            })
            .collect();
        for name in requested {
            let tag = name.as_str().get(7..).unwrap_or_default();
            if tag.len() >= 2 && !tag.starts_with('_') && !machine.has(tag) {
                clauses.extend(self.custom_clause(name.as_str(), tag));
            }
        }
    }

    fn custom_clause(&self, request: &str, tag: &str) -> Option<String> {
        match self.get(request)?.eval(Some(&self.whole()), None, self.env) {
            Value::Str(text) => (!text.is_empty()).then(|| format!("regexp({request}, TARGET.{tag})")),
            Value::Undefined | Value::Int(1..) => Some(self.device_clause(request, tag)),
            Value::Real(number) if number > 0.0 => Some(self.device_clause(request, tag)),
            _ => None,
        }
    }

    fn device_clause(&self, request: &str, tag: &str) -> String {
        if self.has(&format!("Require{tag}")) {
            format!("(countMatches(MY.Require{tag},TARGET.Available{tag}) >= {request})")
        } else {
            format!("(TARGET.{tag} >= {request})")
        }
    }

    /// The ad with the cluster's attributes.
    fn whole(&self) -> classad::Ad {
        let mut whole = self.own.clone();
        whole.chain(self.cluster.cloned());
        whole
    }

    fn transfer_clauses(&mut self, machine: &Machine, clauses: &mut Vec<String>) -> Outcome {
        let domain = "(TARGET.FileSystemDomain == MY.FileSystemDomain)";
        let checks_domain = machine.has("FileSystemDomain");
        let should = self.string("ShouldTransferFiles").unwrap_or_default();
        if should == "NO" {
            clauses.extend((!checks_domain).then(|| domain.to_owned()));
            return Ok(());
        }
        if machine.has_any(&["HasFileTransfer", "HasJobTransferPlugins"]) {
            return Ok(());
        }
        let plugins = self.string("TransferPlugins").unwrap_or_default();
        let mut parts = vec![
            if plugins.is_empty() { "TARGET.HasFileTransfer" } else { "TARGET.HasJobTransferPlugins" }
                .to_owned(),
        ];
        let encrypts =
            ["EncryptInputFiles", "EncryptOutputFiles", "DontEncryptInputFiles", "DontEncryptOutputFiles"];
        if encrypts.iter().any(|name| self.has(name)) && !machine.has("HasPerFileEncryption") {
            parts.push("TARGET.HasPerFileEncryption".to_owned());
        }
        let success = self.string("WhenToTransferOutput").is_some_and(|when| when == "ON_SUCCESS");
        if self.string("TransferCheckpoint").is_some() || self.is_true("PreserveRelativePaths") || success {
            parts.push("versioncmp( split(TARGET.CondorVersion)[1], \"8.9.7\" ) >= 0".to_owned());
        }
        let methods = self.methods(&plugins);
        if !machine.has("HasFileTransferPluginMethods") {
            for method in &methods {
                parts.push(format!("stringListIMember(\"{method}\",TARGET.HasFileTransferPluginMethods)"));
            }
        }
        let secret = methods
            .iter()
            .any(|method| method.eq_ignore_ascii_case("s3") || method.eq_ignore_ascii_case("gs"));
        if secret && !(self.has("EC2AccessKeyId") && self.has("EC2SecretAccessKey")) {
            let message = "URLs of s3 and gs are not fetched, only those of http and https: let the program fetch the file, or put it \
                           into a volume";
            return Err(match self.given("transfer_input_files", Some("TransferInput"))? {
                Some(given) => self.fault(&given, message),
                None => self.missing(message),
            });
        }
        if !methods.is_empty() {
            let list = methods.into_iter().collect::<Vec<_>>().join(",");
            self.set("WantTransferPluginMethods", list);
        }
        let transfer = parts.join(" && ");
        clauses.push(if should == "IF_NEEDED" && !checks_domain {
            format!("({domain} || ({transfer}))")
        } else {
            format!("({transfer})")
        });
        Ok(())
    }

    /// The transfer plugins that URLs need and the job does not bring.
    fn methods(&self, plugins: &str) -> BTreeSet<String> {
        let brought: BTreeSet<String> = plugins
            .split(';')
            .filter_map(|plugin| plugin.split_once('='))
            .flat_map(|(methods, _)| methods.split(',').map(|method| method.trim().to_ascii_lowercase()))
            .collect();
        let mut urls: Vec<String> = Vec::new();
        let inputs = self.string("TransferInput").unwrap_or_default();
        urls.extend(inputs.split(',').map(|file| file.trim().to_owned()));
        urls.extend(self.string("OutputDestination"));
        let remaps = self.string("TransferOutputRemaps").unwrap_or_default();
        urls.extend(remaps.split(';').filter_map(|remap| Some(remap.split_once('=')?.1.trim().to_owned())));
        let methods = urls.iter().filter_map(|url| method(url));
        methods.filter(|method| !brought.contains(&method.to_ascii_lowercase())).collect()
    }

    fn late_clauses(&mut self, machine: &Machine, clauses: &mut Vec<String>) -> Outcome {
        if self.deferred() {
            clauses.push("TARGET.HasJobDeferral".to_owned());
            if !self.has("ScheddInterval") {
                self.set("ScheddInterval", 300);
            }
            clauses.push(
                "(((time() + ScheddInterval) >= (DeferralTime - DeferralPrepTime)) && \
                 (time() < (DeferralTime + DeferralWindow)))"
                    .to_owned(),
            );
        }
        if self.is_true("WantFTOnCheckpoint") && !machine.has("HasSelfCheckpointTransfers") {
            clauses.push("TARGET.HasSelfCheckpointTransfers".to_owned());
        }
        if let Some(version) = self.string("CUDAVersion") {
            match cuda(&version) {
                Some(number) => self.set("CUDAVersion", number),
                None => {
                    return Err(self.missing(format!("cuda_version: '{version}' is no version such as 12.1")));
                }
            }
            clauses.push("CUDAVersion <= TARGET.CUDAMaxSupportedVersion".to_owned());
        }
        if self.is_true("OCUWanted") {
            clauses.push("TARGET.OCU =?= true".to_owned());
        }
        Ok(())
    }
}

/// A version of CUDA as cuda_version counts it: 12.1 is 12001.
fn cuda(text: &str) -> Option<i64> {
    match text.split_once('.') {
        Some((major, minor)) => {
            Some(i64::from(major.parse::<u32>().ok()?) * 1000 + i64::from(minor.parse::<u32>().ok()? % 100))
        }
        None => text
            .parse::<u32>()
            .ok()
            .map(|major| if major < 1000 { i64::from(major) * 1000 } else { i64::from(major) }),
    }
}
