//! A thread that does one thing after the other, and is left behind when one of them hangs.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(crate) struct Worker {
    jobs: Option<Sender<Job>>,
}

impl Worker {
    /// Has something done; `None` if that takes longer than `patience`. Whatever it waits for, the
    /// thread then waits alone: the next job gets another one. It ends with the process if not before.
    pub(crate) fn wait<T: Send + 'static>(
        &mut self,
        patience: Duration,
        what: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = mpsc::channel();
        let job: Job = Box::new(move || _ = tell.send(what()));
        self.start()?.send(job).ok()?;
        let answer = told.recv_timeout(patience).ok();
        if answer.is_none() {
            self.jobs = None;
        }
        answer
    }

    fn start(&mut self) -> Option<&Sender<Job>> {
        if self.jobs.is_none() {
            let (jobs, todo): (Sender<Job>, Receiver<Job>) = mpsc::channel();
            thread::Builder::new().spawn(move || todo.into_iter().for_each(|job| job())).ok()?;
            self.jobs = Some(jobs);
        }
        self.jobs.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_hangs_is_left_behind_and_the_next_one_is_done() {
        const PATIENCE: Duration = Duration::from_secs(60);
        let mut worker = Worker::default();
        let thread = |worker: &mut Worker| worker.wait(PATIENCE, || thread::current().id());
        let first = thread(&mut worker);
        assert!(first.is_some());
        assert_eq!(thread(&mut worker), first, "one thread does all");
        let (_held, for_ever) = mpsc::channel::<()>();
        let hung = worker.wait(Duration::from_millis(20), move || for_ever.recv().is_ok());
        assert_eq!(hung, None);
        assert!(thread(&mut worker).is_some_and(|other| Some(other) != first));
    }
}
