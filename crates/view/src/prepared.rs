//! What was computed of a view, and a cache of it: bounded by bytes, the oldest goes first.

use crate::graph::Graph;
use crate::source::{Against, Loaded, Problem, Source};
use crate::view::View;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tare_analysis::{Diff, DiffOptions, Hot, LabelId, ThreadShare, Tree, by_thread, hot_list};
use tare_profile::{Series, SeriesId};

/// Bytes of computed things that are kept.
const KEPT: usize = 256 << 20;

/// A view, ready to be asked.
pub struct Prepared {
    pub loaded: Loaded,
    pub graph: Arc<Graph>,
    hot: OnceLock<Vec<Hot>>,
    threads: OnceLock<Vec<ThreadShare>>,
}

impl Prepared {
    fn new(loaded: Loaded, key: String) -> Result<Self, Problem> {
        let tree = Tree::build(&loaded.profile, &loaded.metrics, &loaded.shape)
            .map_err(|error| Problem::new(400, error.to_string()))?;
        let graph = Arc::new(Graph::new(key, tree, &loaded.profile));
        let (hot, threads) = Default::default();
        Ok(Prepared { loaded, graph, hot, threads })
    }

    pub fn hot(&self) -> &[Hot] {
        self.hot.get_or_init(|| hot_list(&self.graph.tree))
    }

    pub fn threads(&self) -> Result<&[ThreadShare], Problem> {
        if let Some(threads) = self.threads.get() {
            return Ok(threads);
        }
        let Loaded { profile, metrics, shape, .. } = &self.loaded;
        let threads = by_thread(profile, metrics[0], shape)
            .map_err(|error| Problem::new(400, error.to_string()))?;
        Ok(self.threads.get_or_init(|| threads))
    }

    pub fn interval(&self, of: impl Fn(usize) -> i64) -> Option<(i64, i64)> {
        self.loaded.bounds.map(|bounds| bounds.interval(of))
    }

    /// Calls are the second metric, where they are counted.
    pub fn has_calls(&self) -> bool {
        self.loaded.metrics.len() > 1
    }
}

/// Half of a sandwich.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    Callers,
    Callees,
}

#[derive(Clone)]
enum Kept {
    Prepared(Arc<Prepared>),
    Timed(Arc<Loaded>),
    Half(Arc<Graph>),
    Document(Arc<Value>),
    Compared(Arc<Compared>),
}

/// Two profiles side by side.
pub struct Compared {
    pub diff: Diff,
    pub graph: Arc<Graph>,
    pub unit: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum What {
    Prepared,
    Timed,
    Half(LabelId, Side),
    Document,
    Compared(Against),
}

type Key = (u64, What, View);

/// What was computed lately.
#[derive(Default)]
pub struct Cache {
    kept: Mutex<Vec<(Key, Kept, usize)>>,
    /// One thing is computed at a time: several would need the memory of several, and mostly be the
    /// same.
    computing: Mutex<()>,
}

impl Cache {
    pub fn prepared(
        &self,
        source: &dyn Source,
        epoch: u64,
        view: &View,
    ) -> Result<Arc<Prepared>, Problem> {
        let key = (epoch, What::Prepared, view.clone());
        let kept = self.get_or(key, |key| {
            let loaded = source.load(view)?;
            let size = loaded.size;
            let prepared = Prepared::new(loaded, short(key))?;
            let size = size + prepared.graph.size();
            Ok((Kept::Prepared(Arc::new(prepared)), size))
        })?;
        match kept {
            Kept::Prepared(prepared) => Ok(prepared),
            _ => Err(Problem::new(500, "the cache has mixed up its answers")),
        }
    }

    pub fn timed(
        &self,
        source: &dyn Source,
        epoch: u64,
        view: &View,
    ) -> Result<Arc<Loaded>, Problem> {
        let view = view.without_time();
        let kept = self.get_or((epoch, What::Timed, view.clone()), |_| {
            let loaded = source.timed(&view)?;
            let size = loaded.size;
            Ok((Kept::Timed(Arc::new(loaded)), size))
        })?;
        match kept {
            Kept::Timed(loaded) => Ok(loaded),
            _ => Err(Problem::new(500, "the cache has mixed up its answers")),
        }
    }

    pub fn half(
        &self,
        prepared: &Prepared,
        epoch: u64,
        view: &View,
        label: LabelId,
        side: Side,
    ) -> Result<Arc<Graph>, Problem> {
        let kept = self.get_or((epoch, What::Half(label, side), view.clone()), |key| {
            let tree = &prepared.graph.tree;
            let half = match side {
                Side::Callers => tree.callers_of(label),
                Side::Callees => tree.callees_of(label),
            };
            let graph = Graph::new(short(key), half, &prepared.loaded.profile);
            let size = graph.size();
            Ok((Kept::Half(Arc::new(graph)), size))
        })?;
        match kept {
            Kept::Half(graph) => Ok(graph),
            _ => Err(Problem::new(500, "the cache has mixed up its answers")),
        }
    }

    pub fn document(
        &self,
        source: &dyn Source,
        epoch: u64,
        view: &View,
    ) -> Result<Arc<Value>, Problem> {
        let kept = self.get_or((epoch, What::Document, view.clone()), |_| {
            let document = source.document(view)?;
            let size = document.to_string().len() * 4;
            Ok((Kept::Document(Arc::new(document)), size))
        })?;
        match kept {
            Kept::Document(document) => Ok(document),
            _ => Err(Problem::new(500, "the cache has mixed up its answers")),
        }
    }

    pub fn compared(
        &self,
        source: &dyn Source,
        epoch: u64,
        view: &View,
        against: Against,
    ) -> Result<Arc<Compared>, Problem> {
        let kept = self.get_or((epoch, What::Compared(against.clone()), view.clone()), |key| {
            let new = source.compared(view, false)?;
            let old = match &against {
                Against::File => source.compared(view, true)?,
                Against::Time(time) => source.compared(&view.with_time(time), false)?,
            };
            let compared = compare(&old, &new, short(key))?;
            let size = compared.graph.size() + compared.diff.tree.len() * 80;
            Ok((Kept::Compared(Arc::new(compared)), size))
        })?;
        match kept {
            Kept::Compared(compared) => Ok(compared),
            _ => Err(Problem::new(500, "the cache has mixed up its answers")),
        }
    }

    /// The tree of a key, if it is still there.
    pub fn graph(&self, key: &str) -> Option<Arc<Graph>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find_map(|(_, kept, _)| match kept {
            Kept::Prepared(prepared) if prepared.graph.key == key => {
                Some(Arc::clone(&prepared.graph))
            }
            Kept::Half(graph) if graph.key == key => Some(Arc::clone(graph)),
            Kept::Compared(both) if both.graph.key == key => Some(Arc::clone(&both.graph)),
            _ => None,
        })
    }

    fn get_or(
        &self,
        key: Key,
        compute: impl FnOnce(&Key) -> Result<(Kept, usize), Problem>,
    ) -> Result<Kept, Problem> {
        if let Some(kept) = self.get(&key) {
            return Ok(kept);
        }
        let _one = self.computing.lock().unwrap_or_else(PoisonError::into_inner);
        // Perhaps who was here before has computed it.
        if let Some(kept) = self.get(&key) {
            return Ok(kept);
        }
        let (new, size) = compute(&key)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((key, new.clone(), size));
        // The last one stays, however large it is.
        let mut bytes: usize = kept.iter().map(|(.., size)| size).sum();
        while bytes > KEPT && kept.len() > 1 {
            bytes -= kept.remove(0).2;
        }
        Ok(new)
    }

    fn get(&self, key: &Key) -> Option<Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, ..)| known == key)?;
        // It is the newest now.
        let entry = kept.remove(at);
        kept.push(entry);
        kept.last().map(|(_, found, _)| found.clone())
    }
}

/// Shares of the whole are compared: two parts of a run, and two runs, are seldom of one length.
fn compare(old: &Loaded, new: &Loaded, key: String) -> Result<Compared, Problem> {
    let info = old.profile.series(old.metrics[0]).info();
    let same = |(_, series): &(SeriesId, &Series)| {
        let known = series.info();
        (&known.kind, known.estimate) == (&info.kind, info.estimate)
    };
    let metric = new.profile.all_series().find(same).map(|(id, _)| id).ok_or_else(|| {
        let text = format!("the newer recording has no {} to compare", info.kind.name());
        Problem::new(400, text)
    })?;
    let options = DiffOptions { normalise: true, filter: new.shape.clone() };
    let sides = ((&old.profile, old.metrics[0]), (&new.profile, metric));
    let diff = Diff::build(sides.0, sides.1, &options)
        .map_err(|error| Problem::new(400, error.to_string()))?;
    let graph = Arc::new(Graph::of_both(key, diff.both(), &new.profile, diff.scale()));
    Ok(Compared { diff, graph, unit: crate::queries::unit(info) })
}

/// A short name of what was computed.
fn short(key: &Key) -> String {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    format!("{:x}-{:012x}", key.0, hasher.finish() >> 16)
}
