//! Every manifest in `examples/` is what it says it is: the schemas take it, the operator's own reading takes it, on the
//! demo's nodes every job runs, and what is broken gets the message that its comment promises.

// A test states what it expects by panicking.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use api::{self, ConcurrencyLimit, GroupQuota, HTCJob, Negotiator, NodePolicy, SubmitPolicy, Submitter};
use controller::{kinds, render};
use hollow::nodes::{script, shapes};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node, PodTemplateSpec};
use kube_schema::StructuralSchema;
use model::pool::{Effect, Event, GroupName, Matchable, Outcome, Pool, Problem, Time};
use model::{decide, negotiator, schedd};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The files of a directory, in the order in which kubectl applies them.
fn files(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", directory.display());
    files
}

/// The objects of a file, as the API server gives them out again: with a uid and a time.
fn objects(path: &Path) -> Vec<Value> {
    stored(&std::fs::read_to_string(path).unwrap(), path)
}

fn stored(text: &str, path: &Path) -> Vec<Value> {
    let mut objects: Vec<Value> =
        serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for object in &mut objects {
        let uid = format!("{}/{}", object["metadata"]["namespace"], object["metadata"]["name"]);
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["generation"] = json!(1);
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    objects
}

/// The manifests that stand in a page, between fences.
fn manifests(page: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let fenced = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    fenced.flat_map(|block| stored(&block, &path)).collect()
}

fn all(directory: &str) -> Vec<Value> {
    files(directory).iter().flat_map(|path| objects(path)).collect()
}

fn parse<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{}: {error}", name(object)))
}

fn name(object: &Value) -> String {
    format!("{} {}", object["kind"], object["metadata"]["name"]).replace('"', "")
}

fn schemas() -> BTreeMap<String, StructuralSchema> {
    api::definitions()
        .into_iter()
        .map(|crd| {
            let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
            let schema = StructuralSchema::parse(&schema["openAPIV3Schema"], "schema").unwrap();
            (crd.spec.names.kind, schema)
        })
        .collect()
}

/// Everything that an object says must still be there once it went through its type.
fn nothing_lost<T: DeserializeOwned + Serialize>(object: &Value, what: &str) {
    let typed: T = serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
    missing(object, &serde_json::to_value(typed).unwrap(), what);
}

fn missing(written: &Value, understood: &Value, path: &str) {
    match (written, understood) {
        (Value::Object(written), Value::Object(understood)) => {
            for (key, value) in written {
                let path = format!("{path}.{key}");
                missing(value, understood.get(key).unwrap_or_else(|| panic!("{path} is no field")), &path);
            }
        }
        (Value::Array(written), Value::Array(understood)) => {
            for (at, (value, other)) in written.iter().zip(understood).enumerate() {
                missing(value, other, &format!("{path}[{at}]"));
            }
        }
        _ => {}
    }
}

#[test]
fn the_api_server_would_take_every_object_whole() {
    let schemas = schemas();
    let pages =
        ["README.md", "docs/reference/jobs.md", "docs/tutorials/first-job.md"].map(manifests).concat();
    assert_eq!(pages.len(), 3);
    for object in all("examples")
        .into_iter()
        .chain(all("examples/policies"))
        .chain(all("examples/backfill"))
        .chain(all("examples/limits"))
        .chain(all("examples/negotiators"))
        .chain(pages)
    {
        let what = name(&object);
        if object["kind"] == "Namespace" {
            nothing_lost::<Namespace>(&object, &what);
            continue;
        }
        assert_eq!(object["apiVersion"], "slotwright.dev/v1alpha1", "{what}");
        let schema =
            schemas.get(object["kind"].as_str().unwrap()).unwrap_or_else(|| panic!("{what}: no such kind"));
        assert_eq!(schema.prune(&mut object.clone()), Vec::<String>::new(), "{what}: unknown fields");
        let errors: Vec<String> = schema.validate(&object, None).iter().map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{what}: {errors:?}");
    }
}

#[test]
fn pod_templates_have_known_fields_and_meet_the_restricted_standard() {
    // The page's first example names a namespace that comes with the examples.
    let pages = manifests("docs/reference/jobs.md");
    let jobs = all("examples").into_iter().chain(all("examples/broken")).chain(pages.clone());
    for object in &jobs.filter(|object| object["kind"] == "HTCJob").collect::<Vec<_>>() {
        let what = name(object);
        let template = &object["spec"]["template"];
        nothing_lost::<PodTemplateSpec>(template, &what);
        if !pages.contains(object) {
            let annotations = parse(&template["metadata"]["annotations"]);
            let runtime = script::Script::parse(&annotations, true).unwrap().runtime.unwrap();
            assert!(runtime <= Duration::from_secs(5), "{what}: the demo is to be short");
        }
        let pod = &template["spec"]["securityContext"];
        assert_eq!(
            (&pod["runAsNonRoot"], &pod["seccompProfile"]["type"]),
            (&json!(true), &json!("RuntimeDefault")),
            "{what}"
        );
        for container in template["spec"]["containers"].as_array().unwrap() {
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], json!(false), "{what}");
            assert_eq!(context["capabilities"]["drop"], json!(["ALL"]), "{what}");
            assert!(container["resources"].is_null(), "{what}: resources stand in spec.requests");
        }
    }
}

#[test]
fn jobs_live_in_the_namespaces_that_come_with_them() {
    let objects = all("examples");
    let namespaces: BTreeSet<Option<&str>> = objects
        .iter()
        .filter(|object| object["kind"] == "Namespace")
        .map(|object| object["metadata"]["name"].as_str())
        .collect();
    let broken = [all("examples/broken"), manifests("docs/reference/jobs.md")].concat();
    for object in objects.iter().chain(&broken).filter(|object| object["kind"] == "HTCJob") {
        assert!(namespaces.contains(&object["metadata"]["namespace"].as_str()), "{}", name(object));
    }
    let first = &files("examples")[0];
    assert!(first.ends_with("00-namespaces.yaml"), "{}: namespaces are applied first", first.display());
    let jobs: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "HTCJob").collect();
    let procs: i64 = jobs.iter().map(|job| job["spec"]["count"].as_i64().unwrap()).sum();
    assert!((150..=250).contains(&procs), "{procs} procs");
}

/// A pool on the demo's nodes in which the objects were applied.
struct World {
    pool: Pool,
    now: Time,
}

impl World {
    fn new(objects: &[Value]) -> Self {
        let mut world = Self { pool: Pool::default(), now: Time::from_secs(1_767_225_600) };
        for shape in shapes::demo() {
            let node: Node = shape.node("10.0.0.1", Timestamp::UNIX_EPOCH);
            let slim: kinds::node::SlimNode = parse(&serde_json::to_value(node).unwrap());
            world.apply(Event::Machine(kinds::node::facts(&slim).unwrap()));
        }
        for object in objects {
            if let Some(event) = event(object) {
                world.apply(event);
            }
        }
        world.apply(Event::Synced);
        world
    }

    fn apply(&mut self, event: Event) {
        self.pool.apply(event, self.now);
    }

    /// Lets the deciders and the negotiator work. Claims stay unwritten, so that no job starts and none ends.
    fn negotiate(&mut self) -> &mut Self {
        for _ in 0..20 {
            let decision = decide::decide(&mut self.pool, self.now);
            for effect in decision.effects {
                if let Effect::AddJobFinalizer(key) = effect {
                    self.apply(Event::Outcome(Outcome::JobFinalizerSet(key.uid)));
                }
            }
            if let Some(negotiation) = decision.negotiation {
                let outcome = negotiator::negotiate(&negotiation.cycle);
                decide::conclude(&mut self.pool, &negotiation, &outcome, self.now);
            }
            self.now = self.now + Duration::from_secs(2);
        }
        self
    }
}

fn event(object: &Value) -> Option<Event> {
    Some(match object["kind"].as_str().unwrap() {
        "HTCJob" => Event::Job(kinds::job::facts(&parse::<HTCJob>(object)).unwrap()),
        "GroupQuota" => Event::Group(kinds::group_quota::facts(&parse::<GroupQuota>(object))),
        "ConcurrencyLimit" => {
            Event::Limit(kinds::concurrency_limit::facts(&parse::<ConcurrencyLimit>(object)))
        }
        "Submitter" => Event::Submitter(kinds::submitter::facts(&parse::<Submitter>(object)).unwrap()),
        "Negotiator" => Event::Negotiator(kinds::negotiator::facts(&parse::<Negotiator>(object))),
        "NodePolicy" => Event::Policy(kinds::node_policy::facts(&parse::<NodePolicy>(object))),
        "SubmitPolicy" => Event::SubmitPolicy(kinds::submit_policy::facts(&parse::<SubmitPolicy>(object))),
        _ => return None,
    })
}

#[test]
fn the_operator_accepts_every_object() {
    let pages =
        ["README.md", "docs/reference/jobs.md", "docs/tutorials/first-job.md"].map(manifests).concat();
    for object in all("examples")
        .into_iter()
        .chain(all("examples/policies"))
        .chain(all("examples/backfill"))
        .chain(all("examples/limits"))
        .chain(all("examples/negotiators"))
        .chain(pages)
    {
        let problems = match event(&object) {
            Some(Event::Job(facts)) => facts.spec.err(),
            Some(Event::Policy(facts)) => facts.config.err(),
            Some(Event::SubmitPolicy(facts)) => facts.config.err(),
            Some(Event::Negotiator(facts)) => facts.config.err(),
            Some(Event::Limit(limit)) => Some(limit.problems).filter(|problems| !problems.is_empty()),
            _ => None,
        };
        assert_eq!(problems, None, "{}", name(&object));
    }
}

#[test]
fn every_job_finds_machines_among_the_demos() {
    let mut world = World::new(&all("examples"));
    world.negotiate();
    assert_eq!(world.pool.jobs().len(), 9);
    for cluster in world.pool.jobs().values() {
        let found = cluster.matchable == Matchable::Yes || !cluster.active.is_empty();
        assert!(found, "{}: {:?}", cluster.key.name, cluster.matchable);
        for slot in cluster.active.values() {
            let machine = slot.machine.as_str();
            let fits = match &*cluster.key.name {
                "training" => machine.starts_with("gpu-"),
                "arm-build" => machine == "arm-1",
                "assembly" => machine == "highmem-1" || machine == "huge-1",
                _ => !machine.starts_with("gpu-") && machine != "highmem-1",
            };
            assert!(fits, "{} got {slot}", cluster.key.name);
        }
    }
}

#[test]
fn quotas_are_what_the_comment_says() {
    let mut world = World::new(&all("examples"));
    // Once the deciders have looked at the nodes these offer what they have.
    let mut idle = World::new(&all("examples"));
    decide::decide(&mut idle.pool, idle.now);
    let found = decide::quotas(&idle.pool, idle.now);
    let (quotas, refused) = &*found;
    assert!(refused.is_empty(), "{refused:?}");
    let expected =
        [("biology", 54.4), ("physics", 108.8), ("physics.neutrino", 8.0), ("physics.higgs", 50.4)];
    for (group, quota) in expected {
        let found = quotas.of(group).unwrap();
        assert!((found - quota).abs() < 1e-6, "{group} has {found}");
    }
    world.negotiate();
    for (group, quota) in expected {
        let used = world.pool.in_use().subtree_with_all(&group.into());
        assert!(used > 0.0 && used <= quota, "{group} uses {used} of {quota}");
    }
}

#[test]
fn the_negotiators_share_the_demos_nodes_without_overlap() {
    let demo = all("examples").into_iter().filter(|object| object["kind"] != "Negotiator");
    let mut world = World::new(&demo.chain(all("examples/negotiators")).collect::<Vec<_>>());
    world.negotiate();
    assert_eq!((world.pool.sharing().overlaps.len(), world.pool.sharing().uncovered.count), (0, 0));
    let gpu = |slot: &model::pool::Slot| slot.name().machine.as_str().starts_with("gpu-");
    for slot in world.pool.slots().values() {
        let expected = if gpu(slot) { "gpu" } else { "cpu" };
        assert_eq!(slot.claim().negotiator.name().map(|name| &**name), Some(expected), "{}", slot.name());
    }
    assert!(world.pool.slots().values().any(gpu));
}

#[test]
fn idle_nodes_of_the_demo_do_backfill_work() {
    let objects = [all("examples"), all("examples/backfill")].concat();
    let jobs = |object: &&Value| object["kind"] != "HTCJob";
    let mut world = World::new(&objects.iter().filter(jobs).cloned().collect::<Vec<_>>());
    let mut made = BTreeSet::new();
    for _ in 0..10 {
        for effect in decide::decide(&mut world.pool, world.now).effects {
            if let Effect::CreateBackfill(plan) = effect {
                let pod = render::backfill(&plan).unwrap();
                assert_eq!(pod.metadata.namespace.as_deref(), Some("backfill"));
                made.insert(plan.slot.machine.to_string());
            }
        }
        world.now = world.now + Duration::from_secs(15);
    }
    let governed = world.pool.machines().values().filter(|m| m.policy == Some("backfill".into())).count();
    assert!(governed >= 5 && made.len() == governed, "{made:?} of {governed}");
}

/// `reason:` and `message:` of a broken example's comment.
fn promised(path: &Path) -> (String, String) {
    let text = std::fs::read_to_string(path).unwrap();
    let comment: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix('#'))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let at =
        comment.iter().position(|line| line.starts_with("reason: ")).expect("the comment names the reason");
    let reason = comment[at].strip_prefix("reason: ").unwrap().to_owned();
    let message: Vec<&str> = comment[at + 1..].iter().map(|line| line.trim()).collect();
    (reason, message.join(" ").strip_prefix("message: ").expect("the comment gives the message").to_owned())
}

/// The problems that the operator finds with a job that stands in a pool beside the good examples.
fn found(object: &Value) -> Vec<Problem> {
    let mut objects = all("examples");
    objects.push(object.clone());
    let mut world = World::new(&objects);
    world.negotiate();
    let wanted = object["metadata"]["name"].as_str().unwrap();
    let cluster = world.pool.jobs().values().find(|cluster| &*cluster.key.name == wanted).unwrap();
    assert!(cluster.active.is_empty(), "{wanted} must not start");
    let others = world.pool.jobs().values().filter(|cluster| !cluster.active.is_empty()).count();
    assert!(others >= 5, "the others must not suffer from {wanted}: only {others} have claims");
    let mut problems = cluster.problems.clone();
    problems.extend(schedd::group_problem(&world.pool, cluster));
    if let Matchable::No(problem) = &cluster.matchable {
        problems.push(problem.clone());
    }
    problems
}

#[test]
fn what_is_broken_gets_the_message_that_its_comment_promises() {
    for path in files("examples/broken") {
        let (reason, message) = promised(&path);
        let objects = objects(&path);
        let [object] = &objects[..] else { panic!("{}: one object each", path.display()) };
        let problems = match event(object) {
            Some(Event::Policy(facts)) => facts.config.unwrap_err(),
            _ => found(object),
        };
        let shown: Vec<(String, String)> =
            problems.iter().map(|problem| (problem.reason.to_owned(), problem.to_string())).collect();
        assert_eq!(shown, [(reason, message)], "{}", path.display());
    }
}

#[test]
fn only_the_zero_count_is_refused_by_the_api_server() {
    let schemas = schemas();
    for path in files("examples/broken") {
        for object in objects(&path) {
            let errors: Vec<String> = schemas[object["kind"].as_str().unwrap()]
                .validate(&object, None)
                .iter()
                .map(ToString::to_string)
                .collect();
            if path.ends_with("zero-count.yaml") {
                assert_eq!(errors.len(), 1, "{errors:?}");
                assert!(
                    errors[0].starts_with("spec.count: ") && errors[0].contains("greater than or equal to 1"),
                    "{errors:?}"
                );
            } else {
                assert!(errors.is_empty(), "{errors:?}");
            }
        }
    }
}

#[test]
fn names_of_groups_are_what_jobs_charge() {
    let objects = all("examples");
    let world = World::new(&objects);
    for object in objects.iter().filter(|object| object["kind"] == "HTCJob") {
        if let Some(group) = object["spec"]["accountingGroup"].as_str() {
            assert!(world.pool.group(&GroupName::from(group)).is_some(), "{}", name(object));
        }
    }
}
