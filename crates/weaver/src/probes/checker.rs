//! Checks single calls of probes: that descriptors are well formed, and that arguments fit them and
//! exist at their place.

use super::{Arg, Call, CallId, Kind, ProbeError, Token};
use tare_classfile::descriptor::MethodDescriptor;

/// Collects the calls that have passed.
pub(super) struct Checker {
    pub calls: Vec<Call>,
    /// Whether bytecodes are counted.
    pub count: bool,
}

impl Checker {
    /// A call that returns a token.
    pub fn opening(&mut self, call: &Call, allowed: &[Arg]) -> Result<(CallId, Token), ProbeError> {
        let d = descriptor(call)?;
        let Some(kind) = Kind::of(d.returns) else {
            return Err(fault(call, "must return a token"));
        };
        let class = tare_classfile::descriptor::class_constant_name(d.returns).to_vec();
        let token = Token { kind, class };
        let id = self.add(call, allowed, Some(&token))?;
        Ok((id, token))
    }

    /// A call that returns nothing.
    pub fn closing(
        &mut self,
        call: &Call,
        allowed: &[Arg],
        token: Option<&Token>,
    ) -> Result<CallId, ProbeError> {
        if descriptor(call)?.returns != b"V" {
            return Err(fault(call, "must return nothing"));
        }
        self.add(call, allowed, token)
    }

    fn add(
        &mut self,
        call: &Call,
        allowed: &[Arg],
        token: Option<&Token>,
    ) -> Result<CallId, ProbeError> {
        let d = descriptor(call)?;
        if d.parameters().count() != call.args.len() {
            return Err(fault(call, "as many arguments as parameters are needed"));
        }
        for (at, (&arg, parameter)) in call.args.iter().zip(d.parameters()).enumerate() {
            let is_parameter = |arg: &Arg| matches!(arg, Arg::Parameter(_));
            let fits_any = is_parameter(&arg) && allowed.iter().any(is_parameter);
            if !(fits_any || allowed.contains(&arg)) {
                return Err(fault(call, "an argument that does not exist at this place"));
            }
            let fits = match arg {
                Arg::Count if !self.count => {
                    return Err(fault(call, "takes a count, but nothing counts"));
                }
                Arg::MethodId | Arg::Count | Arg::Weight | Arg::Site | Arg::Levels => {
                    parameter == b"I"
                }
                Arg::MethodName => parameter == b"Ljava/lang/String;",
                Arg::Object | Arg::Exception if at != 0 => {
                    return Err(fault(call, "what is on the stack must be the first argument"));
                }
                Arg::Class => parameter == b"Ljava/lang/Class;",
                Arg::Object | Arg::Parameter(_) => parameter == b"Ljava/lang/Object;",
                Arg::Exception => parameter == b"Ljava/lang/Throwable;",
                Arg::Token => match token {
                    Some(token) => Kind::of(parameter) == Some(token.kind),
                    None => return Err(fault(call, "takes a token, but nothing returns one")),
                },
            };
            if !fits {
                return Err(fault(call, "a parameter of another type than its argument"));
            }
        }
        self.calls.push(call.clone());
        Ok(self.calls.len() - 1)
    }
}

fn descriptor(call: &Call) -> Result<MethodDescriptor<'_>, ProbeError> {
    MethodDescriptor::parse(call.descriptor.as_bytes())
        .ok_or_else(|| fault(call, "malformed descriptor"))
}

pub(super) fn fault(call: &Call, problem: &'static str) -> ProbeError {
    ProbeError { call: format!("{}.{} {}", call.owner, call.name, call.descriptor), problem }
}
