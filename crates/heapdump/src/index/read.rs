//! Opens a dump together with its index.

use super::column::{BLOCK, Cell, Column, Stored};
use super::{
    ADDRESSES, Answers, BEFORE, CHUNKS, CLASS, DOMINATOR, Directory, Key, LEVEL, LIST_ALL,
    LIST_BASE, LIST_OFFSET, MAGIC, Numbers, ORDER, PARENT, PLACE, RETAINED, ROOT_NODE, ROOT_NUMBER,
    SIZE, Shelf, Spec, TAIL, VERSION, sum,
};
use crate::dominators::{Referrers, Tree};
use crate::error::Result;
use crate::heap::{Heap, Options};
use crate::hprof::Hprof;
use crate::ids::Ids;
use crate::image::Image;
use crate::input::Input;
use crate::levels::Levels;
use crate::progress::Progress;
use crate::source::Source;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// Larger directories and states are lies.
const MOST_TEXT: u64 = 1 << 30;

/// Why an index is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It is of another dump, or of an earlier state of this one.
    Stale,
    /// Another version of the program wrote it.
    OtherVersion,
    /// It is no index, or is damaged.
    Damaged,
}

type Opened<T> = std::result::Result<T, Unusable>;

impl Heap {
    /// Opens a dump whose index is there. Blocks of the index are read when they are asked for.
    pub fn of_index(
        dump: File,
        index: File,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<Opened<Heap>> {
        let directory = match directory(&index, &dump) {
            Ok(directory) => directory,
            Err(why) => return Ok(Err(why)),
        };
        let Some(state) = state(&index, &directory) else { return Ok(Err(Unusable::Damaged)) };
        let clone = || dump.try_clone().map_err(crate::HeapError::io("it cannot be read"));
        // What is wrong with the dump itself is told by whoever reads it without an index.
        let source: Option<Box<dyn Source>> = if directory.is_snapshot {
            let image = Image::reopen(clone()?, &state, options);
            image.ok().flatten().map(|image| Box::new(image) as _)
        } else {
            let unpacking = |done, all| progress.tell("unpacking", done, all);
            let input = Input::of_file(clone()?, &options.temporary, &unpacking)?;
            let hprof = Hprof::reopen(input, &state, options);
            hprof.ok().flatten().map(|hprof| Box::new(hprof) as _)
        };
        let Some(source) = source else { return Ok(Err(Unusable::Damaged)) };
        let shelf = Arc::new(Shelf {
            index,
            dump,
            options: options.clone(),
            is_damaged: AtomicBool::new(false),
            anew: OnceLock::new(),
        });
        Ok(assemble(source, &directory, shelf).ok_or(Unusable::Damaged))
    }
}

fn directory(index: &File, dump: &File) -> Opened<Directory> {
    let length = index.metadata().map_err(|_| Unusable::Damaged)?.len();
    let end = length.checked_sub(TAIL as u64).ok_or(Unusable::Damaged)?;
    let mut tail = [0; TAIL];
    index.read_exact_at(&mut tail, end).map_err(|_| Unusable::Damaged)?;
    if tail[24..] != MAGIC {
        return Err(Unusable::Damaged);
    }
    if u32::get(&tail[20..]) != VERSION {
        return Err(Unusable::OtherVersion);
    }
    let (begin, size) = (u64::get(&tail), u64::get(&tail[8..]));
    if size > MOST_TEXT || begin.checked_add(size) != Some(end) {
        return Err(Unusable::Damaged);
    }
    let mut bytes = vec![0; size as usize];
    index.read_exact_at(&mut bytes, begin).map_err(|_| Unusable::Damaged)?;
    if sum(&bytes) != u32::get(&tail[16..]) {
        return Err(Unusable::Damaged);
    }
    let directory: Directory = serde_json::from_slice(&bytes).map_err(|_| Unusable::Damaged)?;
    match Key::of(dump) {
        Ok(key) if key == directory.key => Ok(directory),
        _ => Err(Unusable::Stale),
    }
}

fn state(index: &File, directory: &Directory) -> Option<Vec<u8>> {
    let length = index.metadata().ok()?.len();
    let text = &directory.state;
    if text.length > MOST_TEXT || text.begin.checked_add(text.length)? > length {
        return None;
    }
    let mut bytes = vec![0; text.length as usize];
    index.read_exact_at(&mut bytes, text.begin).ok()?;
    (sum(&bytes) == text.sum).then_some(bytes)
}

/// The heap, if the lengths of its columns fit together.
fn assemble(source: Box<dyn Source>, directory: &Directory, shelf: Arc<Shelf>) -> Option<Heap> {
    let length = shelf.index.metadata().ok()?.len();
    let from = From { directory, shelf: &shelf, length };
    let tree = Tree {
        order: from.column(&ORDER)?,
        place: from.column(&PLACE)?,
        parent: from.column(&PARENT)?,
        referrers: Referrers {
            base: from.column(&LIST_BASE)?,
            offset: from.column(&LIST_OFFSET)?,
            all: from.column(&LIST_ALL)?,
        },
        dominator: from.column(&DOMINATOR)?,
        retained: from.column(&RETAINED)?,
    };
    let (class, size) = (from.column(&CLASS)?, from.column(&SIZE)?);
    let level = from.column(&LEVEL)?;
    let Numbers { count, bitmap } = directory.ids;
    let (chunks, before) = (from.column(&CHUNKS)?, from.column(&BEFORE)?);
    let ids = Ids::stored(count, bitmap, chunks, from.column(&ADDRESSES)?, before);
    let objects = count as usize;
    let places = tree.order.len();
    let fit = class.len() == objects
        && size.len() == objects
        && level.len() == objects
        && tree.place.len() == objects
        && (1..=objects + 1).contains(&places)
        && [tree.parent.len(), tree.dominator.len(), tree.retained.len()] == [places; 3]
        && objects > 0;
    let levels = Levels::stored(level, directory.levels.clone().try_into().ok()?);
    let (nodes, numbers) = (from.column(&ROOT_NODE)?, from.column(&ROOT_NUMBER)?);
    let known = source.roots().len() as u32;
    let roots = (0..nodes.len().min(numbers.len())).map(|at| (nodes.get(at), numbers.get(at)));
    let mut roots: Vec<(u32, u32)> = roots.filter(|(_, number)| *number < known).collect();
    roots.sort_unstable();
    let losses = directory.losses;
    let index = Some(Arc::clone(&shelf));
    let answers = Answers::stored(directory.answers);
    fit.then_some(Heap { source, ids, class, size, tree, levels, losses, roots, index, answers })
}

struct From<'a> {
    directory: &'a Directory,
    shelf: &'a Arc<Shelf>,
    /// Of the index.
    length: u64,
}

impl From<'_> {
    fn column<T: Cell>(&self, spec: &Spec<T>) -> Option<Column<T>> {
        let place = self.directory.columns.iter().find(|place| place.name == spec.name)?;
        let blocks = place.count.div_ceil(BLOCK as u64);
        let (mut places, mut end, mut left) = (Vec::new(), place.begin, place.count);
        for (length, sum) in place.lengths.iter().zip(&place.sums) {
            places.push((end, *length, *sum));
            end = end.checked_add(u64::from(*length))?;
            // A number takes a byte at least, so that no memory is taken for what is not there.
            let count = left.min(BLOCK as u64);
            left -= count;
            if u64::from(*length) < count {
                return None;
            }
        }
        let fits = place.width as usize == T::WIDTH
            && end <= self.length
            && left == 0
            && places.len() as u64 == blocks;
        fits.then(|| {
            Column::Stored(Stored {
                shelf: Arc::clone(self.shelf),
                count: place.count as usize,
                places,
                blocks: (0..blocks).map(|_| OnceLock::new()).collect(),
                there: spec.count,
                pick: spec.pick,
            })
        })
    }
}
