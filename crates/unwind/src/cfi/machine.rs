//! Runs the instructions of call-frame information: from which address on which rule holds. Which
//! instructions are a function's is found in the module above.

use super::{Common, Fault};
use crate::read::Bytes;
use crate::rule::{Base, Cfa, Place, Rule, number};

/// More than rules can say is not a frame: 1 GiB.
const OFFSET_LIMIT: i64 = 1 << 30;

/// States remembered at the same time. Compilers nest one or two.
const REMEMBERED: usize = 32;

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
pub(super) struct Machine {
    code_unit: u64,
    data_unit: i64,
    signal: bool,
    at: u64,
    state: State,
    initial: State,
    remembered: Vec<State>,
}

impl Machine {
    pub(super) fn new(common: &Common<'_>, start: u64) -> Self {
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

    /// The rule of the rest of a function that ends there.
    pub(super) fn end_function(&self, end: u64, each: &mut dyn FnMut(u64, Rule)) {
        if self.at < end {
            each(self.at, self.state.rule(self.signal));
        }
    }

    /// What holds now is what every function of this entry begins with.
    pub(super) fn begin_function(&mut self) {
        self.initial = self.state;
    }

    /// Executes instructions up to an address, if one is given.
    pub(super) fn run(
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
