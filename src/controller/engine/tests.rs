//! The loop while more happens than one turn takes in.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::{Request, Response};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;

use super::super::Cycles;
use super::super::archive::Shelf;
use super::super::creators::Stamps;
use super::super::kinds::Custom;
use super::super::seal::Seals;
use super::super::writer::Tools;
use super::*;
use answers::Pauses;

/// An engine that writes to this client and to this shelf, with its health.
fn engine(client: Client, shelf: Shelf) -> (Engine, Arc<Health>) {
    let clock = Clock::set_to(Timestamp::UNIX_EPOCH);
    let health = Arc::new(Health::default());
    health.leads(clock.now());
    let creators = Creators::new(Seals::default(), Stamps::default(), client.clone(), &Pauses::new(0));
    let engine = Engine::new(
        Writer::new(Tools::new(client, clock, "me")),
        (Arc::clone(&health), HighestClusterId::default()),
        clock,
        (Cycles::on_other_threads(), creators),
        Archive::on(shelf),
    );
    (engine, health)
}

/// An answer is always waiting while the operator writes much.
#[tokio::test(start_paused = true)]
async fn what_the_watches_and_the_history_tell_is_taken_in_while_answers_keep_coming() {
    const WRITES: usize = 2000;
    let answered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answered);
    let service = tower::service_fn(move |_: Request<Body>| {
        let count = Arc::clone(&count);
        async move {
            sleep(Duration::from_millis(5)).await;
            count.fetch_add(1, Ordering::Relaxed);
            let body = Body::from(br#"{"metadata": {"name": "n", "uid": "u"}}"#.to_vec());
            Ok::<_, Infallible>(Response::new(body))
        }
    });
    let (disk, is_ready) = watch::channel(false);
    let kept = Arc::new(AtomicBool::new(false));
    let is_kept = Arc::clone(&kept);
    let shelf = Shelf::kept_by(move |_| {
        let (mut is_ready, is_kept) = (is_ready.clone(), Arc::clone(&is_kept));
        Box::pin(async move {
            is_ready.wait_for(|ready| *ready).await.unwrap();
            is_kept.store(true, Ordering::Relaxed);
        })
    });
    let (mut engine, health) = engine(Client::new(service, "ns"), shelf);
    for number in 0..WRITES {
        let machine = format!("n{number}").as_str().into();
        let effect = Effect::Benchmark { machine, asked: Time::from_secs(0), so_far: None };
        engine.writer.submit(Task::Effect(effect, None), &engine.cache);
    }
    engine.archive.write(&model::pool::Batch { number: 1, ends: Arc::new([]) }, |_| None);
    let (tell, seen) = mpsc::channel(8);
    let stop = CancellationToken::new();
    let running = tokio::spawn(engine.run(seen, stop.clone()));

    sleep(Duration::from_millis(50)).await;
    assert!(!kept.load(Ordering::Relaxed) && answered.load(Ordering::Relaxed) > 0);
    disk.send_replace(true);
    tell.send(WatchMessage::Served(api::Slot::KIND, false)).await.unwrap();
    sleep(Duration::from_millis(50)).await;
    assert!(answered.load(Ordering::Relaxed) < WRITES, "answers keep coming");
    assert!(health.unready(Time::from_secs(0)).unwrap().contains("does not have slots"), "a watch has told");
    assert!(kept.load(Ordering::Relaxed), "the history is written");
    stop.cancel();
    running.await.unwrap();
}
