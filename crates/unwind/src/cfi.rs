//! Reads call-frame information, the contents of `.eh_frame`: which functions it describes, and
//! what each says about its frames from which address on.
//!
//! Only the stack pointer, the frame pointer and the return address are followed. The bytes are
//! those of loaded modules, yet trusted no more than any file: every fault has a name, work is
//! bounded by their length, and nothing panics.

use crate::read::Bytes;
use crate::rule::{Base, Cfa, Place, Rule, number};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The bytes end in the middle of something.
    Truncated,
    /// A number of more than 64 bits.
    Number,
    /// A pointer in an encoding that is not used in `.eh_frame`, or not understood here.
    Encoding,
    /// An augmentation or a version that is not understood.
    Augmentation,
    /// A function that refers to no common entry, or to something else.
    Reference,
    /// An instruction that does not exist, or states restored that were not remembered.
    Instruction,
}

/// States remembered at the same time. Compilers nest one or two.
const REMEMBERED: usize = 32;
/// More than rules can say is not a frame: 1 GiB.
const OFFSET_LIMIT: i64 = 1 << 30;

/// The bytes of a section, and where they are in the process that is described.
#[derive(Clone, Copy)]
pub struct Section<'a> {
    pub bytes: &'a [u8],
    pub address: u64,
}

/// A function's entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function {
    pub start: u64,
    pub end: u64,
    /// Where its entry is in the section.
    offset: usize,
}

/// What functions share.
#[derive(Clone, Copy)]
struct Common<'a> {
    code_unit: u64,
    data_unit: i64,
    pointers: u8,
    /// Functions carry augmentation data, to be skipped.
    sized: bool,
    signal: bool,
    instructions: Bytes<'a>,
}

enum Entry<'a> {
    Common(Common<'a>),
    Function { common: usize, body: Bytes<'a> },
}

/// Lists the functions of a section, in the order in which they stand there, at most `limit` of
/// them. Entries that cannot be read are left out and counted; an unreadable length ends the list.
pub fn functions(section: Section<'_>, limit: usize) -> (Vec<Function>, u64) {
    let mut found = Vec::new();
    let mut unreadable = 0;
    let mut at = 0;
    let mut last: Option<(usize, Common<'_>)> = None;
    while found.len() < limit {
        // The terminator, or a length that leads out of the section.
        let Ok(Some(raw)) = raw(section, at) else { break };
        let offset = std::mem::replace(&mut at, raw.next);
        match parse(raw) {
            Ok(Entry::Common(_)) => {}
            Ok(Entry::Function { common, body }) => {
                match function(section, offset, common, body, &mut last) {
                    // Linkers leave entries of length zero for functions that they dropped.
                    Ok(function) if function.start >= function.end => {}
                    Ok(function) => found.push(function),
                    Err(_) => unreadable += 1,
                }
            }
            Err(_) => unreadable += 1,
        }
    }
    (found, unreadable)
}

/// Tells `each` from which address on which rule holds, for one function, addresses ascending.
pub fn rows(
    section: Section<'_>,
    function: Function,
    mut each: impl FnMut(u64, Rule),
) -> Result<(), Fault> {
    let raw = raw(section, function.offset)?.ok_or(Fault::Reference)?;
    let Entry::Function { common, mut body } = parse(raw)? else {
        return Err(Fault::Reference);
    };
    let common = self::common(section, common)?;
    body.pointer(common.pointers)?;
    body.pointer(common.pointers & 0x0f)?;
    if common.sized {
        let length = body.uleb()?;
        body.take_long(length)?;
    }
    let mut machine = Machine::new(&common, function.start);
    machine.run(common.instructions, None, &mut |_, _| {})?;
    machine.initial = machine.state;
    machine.run(body, Some(function.end), &mut each)?;
    if machine.at < function.end {
        each(machine.at, machine.state.rule(common.signal));
    }
    Ok(())
}

/// An entry whose contents were not looked at yet.
struct Raw<'a> {
    body: Bytes<'a>,
    /// Where the body is in the section, and where the next entry is.
    at: usize,
    next: usize,
}

/// The entry at an offset; `None` at the terminator and at the end.
fn raw(section: Section<'_>, offset: usize) -> Result<Option<Raw<'_>>, Fault> {
    let Some(rest) = section.bytes.get(offset..).filter(|rest| !rest.is_empty()) else {
        return Ok(None);
    };
    let mut at = Bytes::new(rest, section.address.wrapping_add(offset as u64));
    let mut length = u64::from(at.u32()?);
    if length == 0 {
        return Ok(None);
    }
    if length == 0xffff_ffff {
        length = at.u64()?;
    }
    let body = at.take_long(length)?;
    let next = section.bytes.len() - at.rest().len();
    Ok(Some(Raw { body, at: next - body.rest().len(), next }))
}

fn parse(raw: Raw<'_>) -> Result<Entry<'_>, Fault> {
    let mut body = raw.body;
    let id = body.u32()?;
    if id == 0 {
        return read_common(body).map(Entry::Common);
    }
    // How far back the common entry is from here.
    let common = raw.at.checked_sub(id as usize).ok_or(Fault::Reference)?;
    Ok(Entry::Function { common, body })
}

fn common(section: Section<'_>, offset: usize) -> Result<Common<'_>, Fault> {
    match parse(raw(section, offset)?.ok_or(Fault::Reference)?)? {
        Entry::Common(common) => Ok(common),
        Entry::Function { .. } => Err(Fault::Reference),
    }
}

fn function<'a>(
    section: Section<'a>,
    offset: usize,
    common: usize,
    mut body: Bytes<'a>,
    last: &mut Option<(usize, Common<'a>)>,
) -> Result<Function, Fault> {
    // Neighbours mostly share theirs.
    let known = match *last {
        Some((at, known)) if at == common => known,
        _ => self::common(section, common)?,
    };
    *last = Some((common, known));
    let start = body.pointer(known.pointers)?;
    let length = body.pointer(known.pointers & 0x0f)?;
    let end = start.checked_add(length).ok_or(Fault::Number)?;
    Ok(Function { start, end, offset })
}

fn read_common(mut body: Bytes<'_>) -> Result<Common<'_>, Fault> {
    let version = body.u8()?;
    if version != 1 && version != 3 {
        return Err(Fault::Augmentation);
    }
    let augmentation = body.text()?;
    let code_unit = body.uleb()?;
    let data_unit = body.sleb()?;
    let ra = if version == 1 { u64::from(body.u8()?) } else { body.uleb()? };
    if ra != number::RA {
        return Err(Fault::Augmentation);
    }
    let mut common = Common {
        code_unit,
        data_unit,
        pointers: 0,
        sized: false,
        signal: false,
        instructions: body,
    };
    let Some((first, letters)) = augmentation.split_first() else { return Ok(common) };
    if *first != b'z' {
        return Err(Fault::Augmentation);
    }
    let length = body.uleb()?;
    let mut data = body.take_long(length)?;
    for letter in letters {
        match letter {
            b'R' => common.pointers = data.u8()?,
            // The handler of exceptions and its data's encoding concern nobody here.
            b'P' => {
                let encoding = data.u8()?;
                data.pointer(encoding & 0x7f)?;
            }
            b'L' => {
                data.u8()?;
            }
            b'S' => common.signal = true,
            // Pointer authentication and memory tagging of aarch64.
            b'B' | b'G' => {}
            _ => return Err(Fault::Augmentation),
        }
    }
    common.sized = true;
    common.instructions = body;
    Ok(common)
}

#[derive(Clone, Copy)]
enum CfaState {
    Register(u64, i64),
    Expression(Cfa),
}

#[derive(Clone, Copy)]
struct State {
    cfa: CfaState,
    fp: Place,
    ra: Place,
}

impl State {
    fn rule(&self, signal: bool) -> Rule {
        let cfa = match self.cfa {
            CfaState::Expression(cfa) => cfa,
            CfaState::Register(register, offset) => match (base(register), small(offset)) {
                (Some(base), Some(offset)) => Cfa::At(base, offset),
                _ => Cfa::Unsupported,
            },
        };
        Rule { cfa, fp: self.fp, ra: self.ra, signal }
    }

    fn set(&mut self, register: u64, place: Place) {
        match register {
            number::FP => self.fp = place,
            number::RA => self.ra = place,
            _ => {}
        }
    }
}

fn base(register: u64) -> Option<Base> {
    match register {
        number::SP => Some(Base::Sp),
        number::FP => Some(Base::Fp),
        _ => None,
    }
}

fn small(offset: i64) -> Option<i32> {
    if offset.checked_abs()? <= OFFSET_LIMIT { i32::try_from(offset).ok() } else { None }
}

/// The machine that the instructions are for.
struct Machine {
    code_unit: u64,
    data_unit: i64,
    signal: bool,
    at: u64,
    state: State,
    initial: State,
    remembered: Vec<State>,
}

impl Machine {
    fn new(common: &Common<'_>, start: u64) -> Self {
        let state =
            State { cfa: CfaState::Expression(Cfa::Unsupported), fp: Place::Same, ra: Place::Same };
        Self {
            code_unit: common.code_unit,
            data_unit: common.data_unit,
            signal: common.signal,
            at: start,
            state,
            initial: state,
            remembered: Vec::new(),
        }
    }

    /// Executes instructions up to an address, if one is given.
    fn run(
        &mut self,
        mut code: Bytes<'_>,
        end: Option<u64>,
        each: &mut dyn FnMut(u64, Rule),
    ) -> Result<(), Fault> {
        while !code.is_empty() {
            if end.is_some_and(|end| self.at >= end) {
                return Ok(());
            }
            let byte = code.u8()?;
            let low = u64::from(byte & 0x3f);
            match byte & 0xc0 {
                0x40 => self.advance(low, each),
                0x80 => {
                    let place = self.at_cfa(i128::from(code.uleb()?));
                    self.state.set(low, place);
                }
                0xc0 => self.restore(low),
                _ => self.extended(byte, &mut code, each)?,
            }
        }
        Ok(())
    }

    fn extended(
        &mut self,
        byte: u8,
        code: &mut Bytes<'_>,
        each: &mut dyn FnMut(u64, Rule),
    ) -> Result<(), Fault> {
        match byte {
            // nop
            0x00 => {}
            // advance_loc1, 2, 4
            0x02 => {
                let by = u64::from(code.u8()?);
                self.advance(by, each);
            }
            0x03 => {
                let by = u64::from(code.u16()?);
                self.advance(by, each);
            }
            0x04 => {
                let by = u64::from(code.u32()?);
                self.advance(by, each);
            }
            // offset_extended
            0x05 => {
                let register = code.uleb()?;
                let place = self.at_cfa(i128::from(code.uleb()?));
                self.state.set(register, place);
            }
            // restore_extended
            0x06 => {
                let register = code.uleb()?;
                self.restore(register);
            }
            // undefined
            0x07 => self.state.set(code.uleb()?, Place::Lost),
            // same_value
            0x08 => self.state.set(code.uleb()?, Place::Same),
            // register
            0x09 => {
                let register = code.uleb()?;
                code.uleb()?;
                self.state.set(register, Place::Unsupported);
            }
            // remember_state, restore_state
            0x0a if self.remembered.len() < REMEMBERED => self.remembered.push(self.state),
            0x0b => self.state = self.remembered.pop().ok_or(Fault::Instruction)?,
            // def_cfa
            0x0c => {
                let register = code.uleb()?;
                let offset = unsigned(code.uleb()?);
                self.state.cfa = CfaState::Register(register, offset);
            }
            // def_cfa_register
            0x0d => {
                let register = code.uleb()?;
                let CfaState::Register(_, offset) = self.state.cfa else {
                    return Err(Fault::Instruction);
                };
                self.state.cfa = CfaState::Register(register, offset);
            }
            // def_cfa_offset
            0x0e => {
                let offset = unsigned(code.uleb()?);
                self.set_offset(offset)?;
            }
            // def_cfa_expression
            0x0f => {
                let length = code.uleb()?;
                self.state.cfa = CfaState::Expression(cfa_of(code.take_long(length)?));
            }
            // expression
            0x10 => {
                let register = code.uleb()?;
                let length = code.uleb()?;
                self.state.set(register, place_of(code.take_long(length)?));
            }
            // offset_extended_sf
            0x11 => {
                let register = code.uleb()?;
                let place = self.at_cfa(i128::from(code.sleb()?));
                self.state.set(register, place);
            }
            // def_cfa_sf
            0x12 => {
                let register = code.uleb()?;
                let offset = self.factored(code.sleb()?);
                self.state.cfa = CfaState::Register(register, offset);
            }
            // def_cfa_offset_sf
            0x13 => {
                let offset = self.factored(code.sleb()?);
                self.set_offset(offset)?;
            }
            // val_offset, val_offset_sf
            0x14 | 0x15 => {
                let register = code.uleb()?;
                if byte == 0x14 {
                    code.uleb()?;
                } else {
                    code.sleb()?;
                }
                self.state.set(register, Place::Unsupported);
            }
            // val_expression
            0x16 => {
                let register = code.uleb()?;
                let length = code.uleb()?;
                code.take_long(length)?;
                self.state.set(register, Place::Unsupported);
            }
            // aarch64: the return address is signed from here on, or no longer.
            0x2d if cfg!(target_arch = "aarch64") => {}
            // GNU_args_size: what is pushed for calls, which def_cfa_offset says as well.
            0x2e => {
                code.uleb()?;
            }
            _ => return Err(Fault::Instruction),
        }
        Ok(())
    }

    fn advance(&mut self, by: u64, each: &mut dyn FnMut(u64, Rule)) {
        let to = self.at.saturating_add(by.saturating_mul(self.code_unit));
        if to > self.at {
            each(self.at, self.state.rule(self.signal));
            self.at = to;
        }
    }

    fn restore(&mut self, register: u64) {
        match register {
            number::FP => self.state.fp = self.initial.fp,
            number::RA => self.state.ra = self.initial.ra,
            _ => {}
        }
    }

    fn at_cfa(&self, factored: i128) -> Place {
        let offset = i64::try_from(factored * i128::from(self.data_unit)).ok().and_then(small);
        offset.map_or(Place::Unsupported, Place::AtCfa)
    }

    fn factored(&self, offset: i64) -> i64 {
        offset.saturating_mul(self.data_unit)
    }

    fn set_offset(&mut self, offset: i64) -> Result<(), Fault> {
        match &mut self.state.cfa {
            CfaState::Register(_, old) => *old = offset,
            CfaState::Expression(_) => return Err(Fault::Instruction),
        }
        Ok(())
    }
}

fn unsigned(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

/// The expressions that compilers and libraries write for a frame's address.
fn cfa_of(mut code: Bytes<'_>) -> Cfa {
    if let [0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, from @ 0x30..=0x3f, 0x2a, 0x33, 0x24, 0x22] =
        code.rest()
        && cfg!(target_arch = "x86_64")
    {
        return Cfa::Plt(from - 0x30);
    }
    match (register_plus(&mut code), code.rest()) {
        (Some((base, offset)), []) => Cfa::At(base, offset),
        (Some((base, offset)), [0x06]) => Cfa::StoredAt(base, offset),
        _ => Cfa::Unsupported,
    }
}

fn place_of(mut code: Bytes<'_>) -> Place {
    match (register_plus(&mut code), code.rest()) {
        (Some((base, offset)), []) => Place::At(base, offset),
        _ => Place::Unsupported,
    }
}

/// `bregN offset`, and perhaps `plus_uconst`.
fn register_plus(code: &mut Bytes<'_>) -> Option<(Base, i32)> {
    let register = code.u8().ok()?.checked_sub(0x70)?;
    let base = base(u64::from(register))?;
    let mut offset = code.sleb().ok()?;
    if code.rest().first() == Some(&0x23) {
        code.u8().ok()?;
        offset = offset.checked_add(i64::try_from(code.uleb().ok()?).ok()?)?;
    }
    Some((base, small(offset)?))
}
