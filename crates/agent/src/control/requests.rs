//! What front ends ask, answered. Which engine is to do what is in the request; how it does it is
//! the engine's.

use super::Control;
use crate::doing;
use crate::engines::{self, Engine, EngineError, EngineSet};
use crate::events;
use crate::exact;
use crate::fits;
use crate::gate;
use crate::jvm::capability_names;
use crate::threads;
use crate::threads::stalled::Watch;
use std::fs::File;
use tare_protocol::{
    EngineChange, EngineName, EnginePlan, ErrorCode, Greeting, Request, Response, Status,
};

impl Control<'_> {
    pub(super) fn respond(&mut self, index: usize, request: &Request) -> Response {
        match request {
            Request::Hello { protocol, build } => self.greet(index, *protocol, build),
            _ if !self.connections[index].greeted => {
                Response::error(ErrorCode::Request, "say hello first")
            }
            Request::Status => self.status(),
            Request::Start(plan) => self.start(index, plan),
            Request::Change(change) => self.change(index, change),
            Request::Stop(name) => self.stop(index, *name),
            Request::Open(name) => match engines::named(*name).map(Engine::open) {
                Some(opened) => self.hand_over(index, opened),
                None => unknown(*name),
            },
            Request::Explain(pattern) => match exact::explain(pattern) {
                Some(all) => Response::Explained(all),
                None => Response::error(
                    ErrorCode::Request,
                    "no recording is under way that looks for what roots reach; begin one with \
                     `tare record --exact --root METHOD`",
                ),
            },
            Request::Fits { classes, methods } => {
                match fits::fits(self.jvm.jvmti, self.jvm.jni, classes, methods) {
                    Ok(all) => Response::Fitted(all),
                    Err(failure) => internal(&failure),
                }
            }
            Request::Threads(plan) => {
                let connection = &self.connections[index];
                let watch = connection.backlog.is_empty().then(|| {
                    threads::stalled::watch(
                        &connection.stream,
                        self.listener,
                        self.jvm.jvmti,
                        *plan,
                    )
                });
                let watch = watch.flatten();
                let dumped = threads::dump(self.jvm, *plan);
                let (answered, guests) = watch.map(Watch::end).unwrap_or_default();
                self.connections.extend(guests);
                if answered {
                    self.connections[index].answered = true;
                    return Response::Ok;
                }
                self.hand_over(index, dumped)
            }
            Request::Detach => Response::error(ErrorCode::Internal, "handled before"),
            Request::Leave => Response::error(
                ErrorCode::Others,
                "other front ends are connected; the agent leaves by itself when they have gone",
            ),
        }
    }

    fn greet(&mut self, index: usize, protocol: u32, build: &str) -> Response {
        let ours = Greeting::ours();
        if (protocol, build) != (ours.protocol, ours.build.as_str()) {
            return Response::error(
                ErrorCode::Version,
                format!(
                    "this JVM holds the agent of tare {} (build {}, protocol {}), \
                     the front end is of build {build}, protocol {protocol}",
                    ours.version, ours.build, ours.protocol
                ),
            );
        }
        self.connections[index].greeted = true;
        Response::Ok
    }

    fn start(&mut self, index: usize, plan: &EnginePlan) -> Response {
        let name = plan.engine();
        let Some(engine) = engines::named(name) else { return unknown(name) };
        self.make_way(index, engine);
        if let Some(refusal) = self.stream_refusal(index, engine) {
            return refusal;
        }
        let started = if engine.is_shared() && self.wanted().contains(name) {
            Ok(Vec::new())
        } else {
            let jvm = self.jvm;
            let started =
                engine.start(jvm, plan, &mut |step| self.meanwhile(Some(index), name, step));
            doing::done();
            started
        };
        if started.is_ok() {
            self.connections[index].engines.insert(name);
        }
        self.hand_over(index, started)
    }

    /// What yields to the engine that another front end starts ends; of a session that samples, all
    /// that its front end has on the same stream.
    fn make_way(&mut self, index: usize, engine: &dyn Engine) {
        let before = self.wanted();
        let in_the_way = |other: &dyn Engine| {
            other.yields()
                && (other.name() == engine.name() || other.uses_stream() && engine.uses_stream())
        };
        let others = self.connections.iter_mut().enumerate().filter(|(at, _)| *at != index);
        for (_, connection) in others {
            let theirs = connection.engines;
            let Some(yields) = theirs.engines().find(|other| in_the_way(*other)) else { continue };
            let goes = |other: &&dyn Engine| {
                other.name() == yields.name() || other.uses_stream() && yields.uses_stream()
            };
            for other in theirs.engines().filter(goes) {
                connection.engines.remove(other.name());
            }
        }
        self.switch_off(before, None);
    }

    /// Engines that write to the stream are one front end's. Of two that want the same engine, the
    /// engine itself tells.
    fn stream_refusal(&self, index: usize, engine: &dyn Engine) -> Option<Response> {
        if !engine.uses_stream() {
            return None;
        }
        let others = self.connections.iter().enumerate().filter(|(at, _)| *at != index);
        let all = others.fold(EngineSet::default(), |all, (_, other)| all.and(other.engines));
        let mut theirs = all.engines().filter(|other| other.uses_stream());
        let other = theirs.find(|_| !all.contains(engine.name()))?;
        Some(Response::error(
            ErrorCode::Request,
            format!(
                "another front end has engine {} on in this JVM, and all that is sampled goes \
                 through one stream, which one front end reads; end that recording first, or have \
                 one recording do both (`tare record --alloc --cpu`)",
                other.name()
            ),
        ))
    }

    fn change(&mut self, index: usize, change: &EngineChange) -> Response {
        let name = change.engine();
        let Some(engine) = engines::named(name) else { return unknown(name) };
        if !self.connections[index].engines.contains(name) {
            return not_started(name);
        }
        let jvm = self.jvm;
        let changed =
            engine.change(jvm, change, &mut |step| self.meanwhile(Some(index), name, step));
        doing::done();
        match changed {
            Ok(()) => Response::Ok,
            Err(e) => refusal(&e),
        }
    }

    fn stop(&mut self, index: usize, name: EngineName) -> Response {
        if !self.connections[index].engines.contains(name) {
            return not_started(name);
        }
        let before = self.wanted();
        self.connections[index].engines.remove(name);
        self.switch_off(before, Some(index));
        Response::Ok
    }

    /// Queues descriptors, to go with the answer.
    fn hand_over(&mut self, index: usize, files: Result<Vec<File>, EngineError>) -> Response {
        match files {
            Ok(files) => {
                self.connections[index].files = files;
                Response::Ok
            }
            Err(e) => refusal(&e),
        }
    }

    fn status(&self) -> Response {
        let jvmti = self.jvm.jvmti;
        let property = |key| jvmti.system_property(key).unwrap_or_default();
        let counts = self.jvm.jni.frame(|| Ok((jvmti.thread_count()?, jvmti.class_count()?)));
        let (threads, classes) = match counts {
            Some(Ok(counts)) => counts,
            Some(Err(failure)) => return internal(&failure),
            None => return Response::error(ErrorCode::Internal, "the JVM is out of memory"),
        };
        let capabilities = match (jvmti.potential_capabilities(), jvmti.capabilities()) {
            (Ok(potential), Ok(held)) => (capability_names(&potential), capability_names(&held)),
            (Err(failure), _) | (_, Err(failure)) => return internal(&failure),
        };
        let ours = Greeting::ours();
        let remembered = exact::remembered(self.jvm.jni);
        Response::Status(Box::new(Status {
            pid: std::process::id(),
            version: ours.version,
            build: ours.build,
            loaded_by: Some(self.stay.loaded_by),
            agent_ms: u64::try_from(self.stay.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            vm_name: property("java.vm.name"),
            vm_version: property("java.vm.version"),
            java_version: jvmti.java_version().unwrap_or_default(),
            command: property("sun.java.command"),
            threads,
            classes,
            capabilities: capabilities.0,
            capabilities_held: capabilities.1,
            front_ends: u32::try_from(self.connections.len()).unwrap_or(u32::MAX),
            // What is only being started is not on yet.
            engines: self.wanted().engines().filter_map(Engine::status).collect(),
            events: events::callbacks::told(),
            methods_kept: remembered.methods,
            methods_kept_bytes: remembered.bytes,
            panics: gate::panics(),
            refused: self.refused,
        }))
    }
}

fn not_started(engine: EngineName) -> Response {
    Response::error(ErrorCode::Request, format!("this front end has not started engine {engine}"))
}

fn unknown(engine: EngineName) -> Response {
    Response::error(ErrorCode::Request, format!("this agent has no engine {engine}"))
}

fn refusal(error: &EngineError) -> Response {
    let code = match error {
        EngineError::Refused(_) => ErrorCode::Request,
        EngineError::Jvm(_) | EngineError::Files(_) => ErrorCode::Internal,
    };
    Response::error(code, error)
}

fn internal(failure: &crate::jvm::Failure) -> Response {
    Response::error(ErrorCode::Internal, failure)
}
