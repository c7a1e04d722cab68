//! A thread that does one thing after the other, and is left behind when one of them hangs.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Step};
use crate::procfs::Stat;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(crate) struct JobThread {
    jobs: Option<Sender<Job>>,
}

impl JobThread {
    /// Has something done; `None` if that takes longer than `patience`. Whatever it waits for, the
    /// thread then waits alone: the next job gets another one. It ends with the process if not
    /// before.
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

/// What is done in a JVM's directories waits for the JVM within `timeout` by itself; file systems
/// that do not answer are given so much more.
const FOR_FILES: Duration = Duration::from_secs(30);

/// Does something in the directories of a JVM on a thread that is left behind if a file system
/// there does not answer. What it tells of its progress is passed on.
pub(crate) fn in_directories<T: Send + 'static>(
    pid: u32,
    timeout: Duration,
    progress: &mut dyn FnMut(Step),
    what: impl FnOnce(&mut dyn FnMut(Step)) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    within(pid, timeout.saturating_add(FOR_FILES), progress, what)
}

fn within<T: Send + 'static>(
    pid: u32,
    limit: Duration,
    progress: &mut dyn FnMut(Step),
    what: impl FnOnce(&mut dyn FnMut(Step)) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    enum Told<T> {
        Step(Step),
        Done(Result<T, Error>),
    }
    let (tell, told) = mpsc::channel();
    let began = Instant::now();
    let thread = thread::Builder::new().spawn(move || {
        let done = what(&mut |step| _ = tell.send(Told::Step(step)));
        let _ = tell.send(Told::Done(done));
    });
    thread.map_err(Error::io("start a thread"))?;
    loop {
        match told.recv_timeout(limit.saturating_sub(began.elapsed())) {
            Ok(Told::Step(step)) => progress(step),
            Ok(Told::Done(done)) => return done,
            Err(_) => {
                let state = Stat::of(pid).ok().map(|stat| stat.state);
                let step = Step::AwaitingFiles;
                return Err(Error::TimedOut { pid, after: began.elapsed(), step, state });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_hangs_is_left_behind_and_the_next_one_is_done() {
        const PATIENCE: Duration = Duration::from_secs(60);
        let mut jobs = JobThread::default();
        let thread = |jobs: &mut JobThread| jobs.wait(PATIENCE, || thread::current().id());
        let first = thread(&mut jobs);
        assert!(first.is_some());
        assert_eq!(thread(&mut jobs), first, "one thread does all");
        let (_held, for_ever) = mpsc::channel::<()>();
        let hung = jobs.wait(Duration::from_millis(20), move || for_ever.recv().is_ok());
        assert_eq!(hung, None);
        assert!(thread(&mut jobs).is_some_and(|other| Some(other) != first));
    }

    #[test]
    fn directories_that_hang_are_left_behind() {
        let (_held, for_ever) = mpsc::channel::<()>();
        let hangs = move |tell: &mut dyn FnMut(Step)| {
            tell(Step::AwaitingStart);
            Ok(for_ever.recv().is_ok())
        };
        let mut steps = Vec::new();
        // Our own number stands for a JVM's.
        let (pid, moment) = (std::process::id(), Duration::from_millis(300));
        let error = within(pid, moment, &mut |step| steps.push(step), hangs).unwrap_err();
        assert!(error.to_string().contains("file systems of its directories"), "{error}");
        assert_eq!(steps, [Step::AwaitingStart]);
        let done = in_directories(pid, Duration::from_secs(60), &mut |_| {}, |_| Ok(7));
        assert_eq!(done.unwrap(), 7);
    }
}
