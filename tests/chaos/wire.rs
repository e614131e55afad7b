//! The operator's connection to the server: a service that loses, delays and breaks calls as the plan says.

use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use api::labels;
use axum::body::Body;
use http::{Request, Response};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

use super::people;
use super::plan::{Class, How, Lists, When};
use super::store::{Refusal, kind};
use super::verbs::{Call, Verb};
use super::watches;
use super::world::{self, Shared, World};

/// The connection of one operator.
#[derive(Clone)]
pub struct Wire {
    pub world: Shared,
    pub who: usize,
}

type Answer = Result<Response<Body>, io::Error>;

impl tower::Service<Request<kube::client::Body>> for Wire {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let wire = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let call = Call::read(&parts, &body);
            // A call that was sent goes its way, whether or not anybody waits for the answer.
            let (tell, told) = oneshot::channel();
            tokio::spawn(async move {
                if let Some(answer) = wire.deliver(call, &tell).await {
                    let _ = tell.send(answer);
                }
            });
            match told.await {
                Ok(answer) => answer,
                // No answer ever comes.
                Err(_) => pending().await,
            }
        })
    }
}

/// How long the server waits for a webhook, in milliseconds.
const WEBHOOK_TIMEOUT: u64 = 10_000;

/// How a call goes.
struct Fate {
    /// After how many milliseconds the call reaches the server.
    arrives: u64,
    how: Option<How>,
    lost: bool,
    /// How long a call or an answer is under way, in milliseconds.
    way: u64,
}

impl Wire {
    async fn deliver(&self, call: Call, tell: &oneshot::Sender<Answer>) -> Option<Answer> {
        let class = class(&call);
        let (fate, nth, begun) = {
            let mut world = self.world.lock().unwrap();
            world.depart(self.who, class, &call)?
        };
        let arrival = begun + Duration::from_millis(fate.arrives);
        sleep_until(arrival).await;
        if fate.lost {
            return None;
        }
        // The server gives up a call whose caller has hung up, unless it has done what the call asks for by then.
        let ghost = tell.is_closed() && fate.arrives > 1000;
        if ghost && !self.world.lock().unwrap().ghosts {
            return None;
        }
        let answer = match fate.how {
            Some(How::Error(code)) => Err(Refusal(code, "InternalError", "injected".to_owned())),
            Some(How::Throttled) => Err(Refusal(429, "TooManyRequests", "injected".to_owned())),
            Some(How::Conflict) => {
                Err(Refusal(409, "Conflict", "injected: the object has been modified".to_owned()))
            }
            Some(How::Reset) => return Some(Err(io::ErrorKind::ConnectionReset.into())),
            Some(How::Silence) => return None,
            _ => {
                let done = self.arrive(&call, class, nth, ghost);
                match fate.how {
                    Some(How::ErrorAfter) => {
                        Err(Refusal(500, "InternalError", "injected, after it was done".to_owned()))
                    }
                    Some(How::ResetAfter) => return Some(Err(io::ErrorKind::ConnectionReset.into())),
                    Some(How::SilenceAfter) => return None,
                    _ => done,
                }
            }
        };
        let late = if let Some(How::LateAnswer(late)) = fate.how { u64::from(late) } else { 0 };
        sleep(Duration::from_millis(fate.way + late)).await;
        let alive = {
            let mut world = self.world.lock().unwrap();
            if let Ok(list) = answer.as_ref().map(Arc::clone)
                && class == Class::List
                && call.key.kind == "pods"
                && !tell.is_closed()
            {
                let pods = list["items"].as_array().into_iter().flatten();
                pods.for_each(|pod| super::ends::tell(&mut world, self.who, pod));
            }
            world.alive(self.who)
        };
        alive.then(|| Ok(self.respond(&call, answer)))
    }

    /// Lets the server do what the call asks for.
    fn arrive(&self, call: &Call, class: Class, nth: u32, ghost: bool) -> Result<Arc<Value>, Refusal> {
        let mut world = self.world.lock().unwrap();
        for what in world.due(When::Before(class, nth)) {
            people::perform(&mut world, &what);
        }
        let done = match call.verb {
            Verb::List => Ok(Arc::new(world.list(call))),
            Verb::Watch if call.begins_with_list() && world.server.lists == Lists::InPages => Err(Refusal(
                422,
                "Invalid",
                "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch".to_owned(),
            )),
            Verb::Watch => Ok(Arc::default()),
            _ => world.perform(class, call, ghost),
        };
        for what in world.due(When::After(class, nth)) {
            people::perform(&mut world, &what);
        }
        let who = self.who;
        world.note(|| match &done {
            Ok(_) => format!("operator {who}: {class:?} {} {}", call.key.name, brief(&call.body)),
            Err(refusal) => format!("operator {who}: {class:?} {} is refused: {}", call.key.name, refusal.2),
        });
        done
    }

    fn respond(&self, call: &Call, answer: Result<Arc<Value>, Refusal>) -> Response<Body> {
        let (code, body) = match answer {
            Err(refusal) => (refusal.0, Body::from(refusal.status().to_string())),
            Ok(_) if call.verb == Verb::Watch => {
                (200, Body::from_stream(watches::stream(self.world.clone(), self.who, call)))
            }
            Ok(object) if call.verb == Verb::Create => (201, Body::from(object.to_string())),
            Ok(object) => (200, Body::from(object.to_string())),
        };
        let mut response = Response::builder().status(code).header("content-type", "application/json");
        if code == 429 {
            response = response.header("retry-after", "1");
        }
        response.body(body).unwrap()
    }
}

fn brief(body: &Value) -> String {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let cut: String = text.chars().take(400).collect();
    cut
}

/// Which class a call is of.
fn class(call: &Call) -> Class {
    match (call.verb, call.key.kind, call.sub.as_str()) {
        (Verb::Watch, ..) => Class::Watch,
        (Verb::List, ..) => Class::List,
        // The operator reads Leases of nodes and agents. The other Leases are the leader's, and the mark of the pool's
        // owner.
        (Verb::Get, "leases", _) if call.key.name.starts_with(labels::AGENT_LEASE_PREFIX) => Class::GetOther,
        (_, "leases", _) => Class::Lease,
        (_, "events", _) => Class::Tell,
        (Verb::Patch, "htcjobs", "status") => Class::JobStatus,
        (Verb::Patch, "slots", "status") => Class::SlotStatus,
        (Verb::Patch, _, "status") => Class::OtherStatus,
        (Verb::Create, "slots", _) => Class::CreateSlot,
        (Verb::Create, "pods", _) => Class::CreatePod,
        (Verb::Create, ..) => Class::CreateOther,
        (Verb::Patch | Verb::Update, "slots", _) => Class::PatchSlot,
        (Verb::Patch, "pods", _) if call.strategic => Class::UntrackPod,
        (Verb::Patch, "pods" | "nodereports", _) => Class::AskAgent,
        (Verb::Patch, "htcjobs", _) => Class::AddJobFinalizer,
        (Verb::Delete, "slots", _) => Class::DeleteSlot,
        (Verb::Delete, "pods", _) => Class::DeletePod,
        (Verb::Delete, ..) => Class::DeleteOther,
        (Verb::Get, "slots", _) => Class::GetSlot,
        (Verb::Get, "pods", _) => Class::GetPod,
        (Verb::Get, "htcjobs", _) => Class::GetJob,
        (Verb::Get, ..) => Class::GetOther,
        (verb, kind, sub) => panic!("{verb:?} {kind}/{sub} is not expected"),
    }
}

impl World {
    /// Decides how a call goes that an operator sends. `None` if the operator is dead, so that the call goes nowhere.
    fn depart(&mut self, who: usize, class: Class, call: &Call) -> Option<(Fate, u32, Instant)> {
        let at = self.at();
        if !self.alive(who) {
            let long_dead = self.lives[who].buried.is_some_and(|buried| at > buried + 100);
            if long_dead {
                self.violated(format!("operator {who} is dead and still calls: {class:?} {}", call.key.name));
            }
            return None;
        }
        let count = self.counts.entry(class).or_default();
        let nth = *count;
        *count += 1;
        let line = format!("{at} {who} {class:?} {:?} {:?} {}", call.key, call.query, call.body);
        self.hash(line.as_bytes());
        self.note(|| format!("> {line}"));
        self.checks.called(at);
        self.checks.caps.sets_out(call, at);
        if call.key.kind == "pods" && matches!(class, Class::DeletePod | Class::OtherStatus) {
            let uid = call.body["preconditions"]["uid"].as_str().or(call.body["metadata"]["uid"].as_str());
            super::ends::sets_out(self, who, uid.unwrap_or_default());
        }
        if world::class_writes(class) && class != Class::Lease {
            super::checks::writes(self, who);
        }
        let hindrance = self.hindrances[self.lives[who].seat];
        let how = self.faults.get(&(class, nth)).copied();
        let way = 1 + self.draw(&format!("way {class:?} {nth}"), 8);
        let mut fate = Fate { arrives: way, how, lost: at < hindrance.cut_until, way };
        if let Some(How::Late(late)) = how {
            fate.arrives += u64::from(late);
        }
        let hangs =
            self.webhooks.get(&call.key.namespace).filter(|(until, _)| at < *until && call.is_admitted());
        if let Some((_, fails)) = hangs {
            fate.arrives += WEBHOOK_TIMEOUT;
            if *fails {
                fate.how = fate.how.or(Some(How::Error(500)));
            }
        }
        if at < hindrance.stalled_until {
            fate.arrives = fate.arrives.max(hindrance.stalled_until - at);
        }
        if let Some(how) = how {
            self.coverage.fault(how.name());
            self.note(|| {
                format!("operator {who}: {class:?} {} (the {}th) goes wrong: {how:?}", call.key.name, nth + 1)
            });
        }
        Some((fate, nth, Instant::now()))
    }

    pub fn list(&self, call: &Call) -> Value {
        let (_, name, version, _) = kind(call.key.kind).unwrap();
        let items: Vec<Value> = self
            .store
            .of(call.key.kind)
            .filter(|(key, _)| call.key.namespace.is_empty() || key.namespace == call.key.namespace)
            .map(|(_, object)| (**object).clone())
            .collect();
        json!({"kind": format!("{name}List"), "apiVersion": version,
               "metadata": {"resourceVersion": self.store.version.to_string()}, "items": items})
    }
}

impl How {
    /// The name of the kind of fault, for the coverage.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error(_) => "error",
            Self::ErrorAfter => "error after effect",
            Self::Throttled => "throttled",
            Self::Conflict => "conflict",
            Self::Reset => "reset",
            Self::ResetAfter => "reset after effect",
            Self::Silence => "no answer",
            Self::SilenceAfter => "no answer after effect",
            Self::Late(_) => "late",
            Self::LateAnswer(_) => "late answer",
        }
    }
}

/// A line of a watch, or the error that ends the watch.
pub type Line = Result<bytes::Bytes, io::Error>;
