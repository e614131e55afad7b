//! The universe, the image, the executable, its arguments and its environment.

use condor_config::Diagnostic;

use super::{GivenValue, Job, Outcome, Universe};
use crate::words::{self, Environment, Filter};
use crate::world::World;

/// HTCondor's universes by name and number, but for vanilla and its kinds.
const OTHERS: &[(&str, &str, &str)] = &[
    ("standard", "1", "HTCondor dropped it"),
    ("scheduler", "7", "let the program run in a pod: leave universe out"),
    ("mpi", "8", "HTCondor dropped it"),
    ("grid", "9", "a job runs in the pool, and is not handed on to another system"),
    ("java", "10", "use an image with a Java runtime, and java as the executable"),
    ("parallel", "11", "a job has procs that run each by itself; see the page on wide jobs"),
    ("local", "12", "let the program run in a pod: leave universe out"),
    ("vm", "13", "a pod is no virtual machine"),
];

impl Job<'_, '_> {
    pub(super) fn set_universe(&mut self) -> Outcome {
        let given = self.given("universe", Some("JobUniverse"))?;
        self.memory.universe = match &given {
            None => Universe::Vanilla,
            Some(given) if given.is("vanilla") || given.is("5") => Universe::Vanilla,
            Some(given) if given.is("docker") => Universe::Docker,
            Some(given) if given.is("container") => Universe::Container,
            Some(given) => return Err(self.unknown_universe(given)),
        };
        let container = self.given("container_image", Some("ContainerImage"))?;
        if self.memory.universe == Universe::Docker {
            if let Some(container) = container {
                return Err(
                    self.fault(&container, "the docker universe takes docker_image: name the image there")
                );
            }
            self.set("WantDocker", true);
        } else {
            let docker = self.given("docker_image", Some("DockerImage"))?;
            if let (Some(_), Some(container)) = (&docker, &container) {
                return Err(self.fault(container, "there is a docker_image, too: leave one of them out"));
            }
            if docker.is_some() || container.is_some() {
                self.memory.universe = Universe::Container;
            }
            if docker.is_some() {
                self.set("WantDockerImage", true);
            }
        }
        self.set("JobUniverse", 5);
        if self.memory.universe == Universe::Container {
            self.set("WantContainer", true);
        }
        Ok(())
    }

    fn unknown_universe(&self, given: &GivenValue) -> Diagnostic {
        let other = OTHERS.iter().find(|(name, number, _)| given.is(name) || given.is(number));
        self.fault(
            given,
            match other {
                Some((name, _, why)) => format!("Slotwright has no {name} universe: {why}"),
                None => format!("'{}' is no universe: use vanilla, container or docker", given.as_str()),
            },
        )
    }

    fn set_image(&mut self) -> Outcome {
        let universe = self.memory.universe;
        self.program.is_docker = universe == Universe::Docker;
        if universe == Universe::Vanilla {
            return Ok(());
        }
        if let Some(docker) = self.given("docker_image", Some("DockerImage"))? {
            let image = docker.without_quotes().to_owned();
            if image.is_empty() {
                return Err(self.fault(&docker, "the name of the image is empty"));
            }
            self.set("DockerImage", image.as_str());
            self.program.image = Some(image);
        } else if universe == Universe::Docker && !self.has("DockerImage") {
            return Err(self.missing("a job of the docker universe needs docker_image"));
        }
        if universe == Universe::Docker {
            return Ok(());
        }
        if let Some(container) = self.given("container_image", Some("ContainerImage"))? {
            let image = container.without_quotes().to_owned();
            let foreign =
                ["instance://", "library://", "shub://"].iter().any(|start| image.starts_with(start));
            if image.is_empty() || foreign {
                return Err(self.fault(&container, format!("'{image}' is no image: use docker://NAME")));
            }
            self.set("ContainerImage", image.as_str());
            self.set(wanted(&image), true);
            self.program.image = Some(image);
        } else if !self.has("ContainerImage") && !self.has("DockerImage") {
            return Err(self.missing("a job of the container universe needs container_image or docker_image"));
        }
        Ok(())
    }

    pub(super) fn set_executable(&mut self) -> Outcome {
        self.set_image()?;
        if self.given("shell", None)?.is_some() {
            self.set("Cmd", "/bin/sh");
            self.set("TransferExecutable", false);
            self.program.executable = Some("/bin/sh".to_owned());
            return Ok(());
        }
        let given = self.given("executable", Some("Cmd"))?;
        let pseudo = given.is_none();
        if pseudo {
            if self.has("Cmd") {
                if let Some(first) = self.first {
                    self.program.executable.clone_from(&first.executable);
                    self.program.is_transferred = first.is_transferred;
                }
                return Ok(());
            }
            if self.memory.universe == Universe::Vanilla {
                return Err(self.missing("there is no executable: write executable = PROGRAM"));
            }
        }
        let mut transferred = true;
        if let Some(transfer) = self.given("transfer_executable", Some("TransferExecutable"))?
            && transfer.as_str().starts_with(['f', 'F'])
        {
            self.set("TransferExecutable", false);
            transferred = false;
        }
        if pseudo && transferred {
            self.set("TransferExecutable", false);
            transferred = false;
        }
        let name = given.as_ref().map(|given| given.as_str().to_owned()).unwrap_or_default();
        let path = if transferred { World::full_path(&self.world.directory, &name) } else { name.clone() };
        self.set("Cmd", path);
        self.program.is_transferred = transferred;
        self.program.executable = Some(name).filter(|name| !name.is_empty());
        Ok(())
    }

    pub(super) fn set_arguments(&mut self) -> Outcome {
        let old = self.given("arguments", Some("Args"))?;
        let new = self.given("arguments2", None)?;
        let shell = self.given("shell", None)?;
        let both = self.boolean("allow_arguments_v1", None)?.unwrap_or(false);
        if let Some(shell) = shell {
            let words = vec!["-c".to_owned(), shell.as_str().to_owned()];
            self.set("Arguments", classad::join_arguments(&words));
            self.program.arguments = words;
            return Ok(());
        }
        if let (Some(_), Some(new), false) = (&old, &new, both) {
            return Err(
                self.fault(new, "there are arguments, too: leave one out, or say allow_arguments_v1 = true")
            );
        }
        let (given, read) = match (new, old) {
            (Some(given), _) => (Some(words::arguments_quoted(given.as_str())), Some(given)),
            (None, Some(given)) => (Some(words::arguments(given.as_str())), Some(given)),
            (None, None) if self.has("Args") || self.has("Arguments") => {
                // As in HTCondor, a later proc without arguments has those of the first one.
                if let Some(first) = self.first {
                    self.program.arguments.clone_from(&first.arguments);
                    if !first.arguments.is_empty() {
                        self.warn_of_inherited(&["arguments", "Args", "arguments2"], "those", |raw| {
                            format!(
                                "put the value into double quotes to have none, as in arguments = \"{}\"",
                                raw.trim()
                            )
                        });
                    }
                }
                return Ok(());
            }
            (None, None) => (None, None),
        };
        let read = match (given, read) {
            (Some(Ok(words)), _) => words,
            (Some(Err((at, message))), Some(given)) => return Err(self.fault_at(&given, at, message)),
            _ => words::Words { words: Vec::new(), is_v1: false },
        };
        if read.is_v1 {
            self.set("Args", read.words.join(" "));
        } else {
            self.set("Arguments", classad::join_arguments(&read.words));
        }
        self.program.arguments = read.words;
        Ok(())
    }

    pub(super) fn set_environment(&mut self) -> Outcome {
        let old = self.given("environment", Some("env"))?;
        let new = self.given("environment2", None)?;
        let both = self.boolean("allow_environment_v1", None)?.unwrap_or(false);
        let mut prefers_v1 = false;
        if old.is_some() && new.is_none() {
            let env = self.given("env", None)?;
            prefers_v1 = env.is_some_and(|env| !words::is_quoted(env.as_str()));
        }
        if let (Some(_), Some(new), false) = (&old, &new, both) {
            return Err(self.fault(
                new,
                "there is an environment, too: leave one out, or say allow_environment_v1 = true",
            ));
        }
        let is_old = old.is_some() && new.is_none();
        let mut environment = Environment::default();
        if let Some(first) = self.first {
            // As in HTCondor, a later proc adds to the environment of the first one, and getenv alone adds nothing.
            self.program.inherited = first.inherited;
            if old.is_none() && new.is_none() {
                self.program.environment.clone_from(&first.environment);
                if !first.environment.is_empty() {
                    self.warn_of_inherited(&["environment", "env", "environment2"], "that", |_| {
                        "give each variable a value in every row".to_owned()
                    });
                }
                return Ok(());
            }
            environment.0.extend(first.environment.iter().cloned());
        }
        if let Some(given) = &new
            && !words::is_quoted(given.as_str())
        {
            return Err(self.fault(given, "expected an environment in double quotes"));
        }
        if let Some(given) = new.as_ref().or(old.as_ref()) {
            let read = Environment::read(given.as_str()).map_err(|message| self.fault(given, message))?;
            environment.0.extend(read.0);
        }
        if let Some(list) = self.given("getenv", Some("get_env"))? {
            self.take_environment(&mut environment, &list, is_old)?;
        }
        if prefers_v1 {
            let Some(text) = environment.to_v1() else {
                let message = "a value cannot be said in the old syntax: use environment, in double quotes";
                return Err(old.map_or_else(|| self.missing(message), |old| self.fault(&old, message)));
            };
            self.set("Env", text);
            self.set("EnvDelim", ";");
        } else {
            self.set("Environment", environment.to_v2());
        }
        self.program.environment = environment.0.into_iter().collect();
        Ok(())
    }

    /// Warns, once for a cluster, of a command that is given under one of these names, is empty for the proc, and leaves to the proc what
    /// the first proc has.
    fn warn_of_inherited(&mut self, names: &[&'static str], what: &str, advice: impl Fn(&str) -> String) {
        let given = names.iter().find_map(|name| Some((*name, self.scope.variable(name)?)));
        let Some((name, text)) = given else { return };
        let place = if self.program.items.is_empty() {
            format!("proc {}", self.proc)
        } else {
            format!("row {}", self.row.saturating_add(1))
        };
        let message = format!(
            "is empty in {place}, so that the proc has {what} of the first, as in HTCondor: {}",
            advice(&text.as_str())
        );
        let given = GivenValue { name: name.to_owned(), value: String::new(), text };
        self.warn(&given, name, message);
    }

    /// Adds what `getenv` wants of the environment of submission.
    fn take_environment(
        &mut self,
        environment: &mut Environment,
        list: &GivenValue,
        is_old: bool,
    ) -> Outcome {
        let (filter, all) = match self.scope.boolean(list.as_str()) {
            Some(false) => return Ok(()),
            Some(true) => (Filter::default(), true),
            None => (Filter::read(list.as_str()), false),
        };
        let Some(outside) = &self.world.host.environment else {
            return Err(
                self.fault(list, "the environment is not known here: name the variables in environment")
            );
        };
        for (name, value) in outside {
            if filter.lets(name, value)
                && !(is_old && value.contains(';'))
                && !environment.0.contains_key(name)
            {
                environment.0.insert(name.clone(), Some(value.clone()));
                self.program.inherited += usize::from(all);
            }
        }
        Ok(())
    }

    /// Container services: names, and a port for each.
    pub(super) fn set_services(&mut self) -> Outcome {
        if self.memory.universe == Universe::Vanilla {
            return Ok(());
        }
        let Some(list) = self.given("container_service_names", Some("ContainerServiceNames"))? else {
            return Ok(());
        };
        self.set("ContainerServiceNames", list.as_str());
        for service in crate::queue::words(list.as_str()) {
            let port = self.integer(&format!("{service}_container_port"), None)?;
            if let Some(port) = port.filter(|port| (0..=65535).contains(port)) {
                self.set(&format!("{service}_ContainerPort"), port);
            } else {
                let message =
                    format!("the service '{service}' needs {service}_container_port, from 0 to 65535");
                return Err(self.fault(&list, message));
            }
        }
        Ok(())
    }
}

/// The attribute that tells which kind of image a container image is.
fn wanted(image: &str) -> &'static str {
    match image {
        image if image.starts_with("docker:") => "WantDockerImage",
        image if is_sif(image) => "WantSIF",
        _ => "WantSandboxImage",
    }
}

/// Whether an image is a file of Apptainer's. Capital letters are another ending, as in HTCondor.
#[allow(clippy::case_sensitive_file_extension_comparisons, reason = "as HTCondor")]
pub(super) fn is_sif(image: &str) -> bool {
    image.ends_with(".sif")
}
