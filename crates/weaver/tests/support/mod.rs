//! A small assembler and disassembler, so that tests read as text.
//!
//! One class per text. `class NAME VERSION`, then methods: `method NAME DESCRIPTOR FLAGS STACK
//! LOCALS` and its lines. A line is a label (`a:`), an instruction, or one of
//! `try FROM TO HANDLER TYPE`, `frame LABEL [LOCALS] [STACK]`, `line LABEL NUMBER`,
//! `var LABEL LABEL NAME TYPE SLOT`. Constants stand in their place: `invokestatic A.b:(I)V`.
#![allow(dead_code, reason = "each test file takes what it needs")]

use std::collections::HashMap;
use std::fmt::Write;
use tare_classfile::opcode::{self, Format};
use tare_classfile::stackmap::{FrameKind, Frames, VerificationType, encode_frame};
use tare_classfile::{ClassFile, Code, print};

#[derive(Default)]
struct Pool {
    entries: Vec<Vec<u8>>,
    known: HashMap<Vec<u8>, u16>,
}

impl Pool {
    fn add(&mut self, entry: Vec<u8>) -> u16 {
        if let Some(&i) = self.known.get(&entry) {
            return i;
        }
        self.entries.push(entry.clone());
        let index = self.entries.len() as u16;
        // Long and double take two indexes.
        if matches!(entry[0], 5 | 6) {
            self.entries.push(Vec::new());
        }
        self.known.insert(entry, index);
        index
    }

    fn utf8(&mut self, s: &str) -> u16 {
        let mut e = vec![1];
        e.extend((s.len() as u16).to_be_bytes());
        e.extend(s.as_bytes());
        self.add(e)
    }

    fn refer(&mut self, tag: u8, indexes: &[u16]) -> u16 {
        let mut e = vec![tag];
        indexes.iter().for_each(|i| e.extend(i.to_be_bytes()));
        self.add(e)
    }

    fn class(&mut self, name: &str) -> u16 {
        let name = self.utf8(name);
        self.refer(7, &[name])
    }

    fn member(&mut self, tag: u8, text: &str) -> u16 {
        let (owner, rest) = text.split_once('.').expect("OWNER.NAME:TYPE");
        let (name, ty) = rest.split_once(':').expect("NAME:TYPE");
        let class = self.class(owner);
        let (name, ty) = (self.utf8(name), self.utf8(ty));
        let nt = self.refer(12, &[name, ty]);
        self.refer(tag, &[class, nt])
    }
}

fn opcode_of(mnemonic: &str) -> u8 {
    (0..=255u8)
        .find(|&o| opcode::lookup(o).is_some_and(|r| r.mnemonic == mnemonic))
        .unwrap_or_else(|| panic!("no instruction {mnemonic}"))
}

#[derive(Default)]
struct Method {
    lines: Vec<String>,
    head: Vec<String>,
}

/// Assembles a class.
pub fn assemble(text: &str) -> Vec<u8> {
    let mut name = "T".to_owned();
    let mut version = 52u16;
    let mut methods: Vec<Method> = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("//")) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match words[0].as_str() {
            "class" => {
                name = words[1].clone();
                version = words[2].parse().unwrap();
            }
            "method" => methods.push(Method { head: words, lines: Vec::new() }),
            _ => methods.last_mut().expect("a method first").lines.push(line.to_owned()),
        }
    }
    let mut pool = Pool::default();
    let this = pool.class(&name);
    let parent = pool.class("java/lang/Object");
    let mut body = Vec::new();
    let u2 = |out: &mut Vec<u8>, v: u16| out.extend(v.to_be_bytes());
    u2(&mut body, 0x21);
    u2(&mut body, this);
    u2(&mut body, parent);
    u2(&mut body, 0);
    u2(&mut body, 0);
    u2(&mut body, methods.len() as u16);
    for m in &methods {
        method(m, &name, &mut pool, &mut body);
    }
    u2(&mut body, 0);
    let mut out = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0];
    u2(&mut out, version);
    u2(&mut out, pool.entries.len() as u16 + 1);
    pool.entries.iter().for_each(|e| out.extend(e));
    out.extend(body);
    out
}

fn method(m: &Method, class: &str, pool: &mut Pool, out: &mut Vec<u8>) {
    let u2 = |out: &mut Vec<u8>, v: u16| out.extend(v.to_be_bytes());
    let u4 = |out: &mut Vec<u8>, v: u32| out.extend(v.to_be_bytes());
    let mut flags = 1;
    for f in m.head[3].split(',') {
        flags |= match f {
            "static" => 8,
            "synchronized" => 0x20,
            "abstract" => 0x400,
            "native" => 0x100,
            _ => 0,
        };
    }
    u2(out, flags);
    u2(out, pool.utf8(&m.head[1]));
    u2(out, pool.utf8(&m.head[2]));
    if m.lines.is_empty() {
        return u2(out, 0);
    }
    u2(out, 1);
    u2(out, pool.utf8("Code"));
    let mut code = Vec::new();
    let mut labels: HashMap<&str, u16> = HashMap::new();
    let mut fixups: Vec<(usize, usize, &str, usize)> = Vec::new();
    let (mut tries, mut frames, mut lines, mut vars) = (vec![], vec![], vec![], vec![]);
    for line in &m.lines {
        if let Some(label) = line.strip_suffix(':') {
            labels.insert(label, code.len() as u16);
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "try" => tries.push(words),
            "frame" => frames.push(line.as_str()),
            "line" => lines.push(words),
            "var" => vars.push(words),
            _ => insn(&words, line, pool, &mut code, &mut fixups),
        }
    }
    labels.insert("end", code.len() as u16);
    let label = |l: &str| *labels.get(l).unwrap_or_else(|| panic!("no label {l}"));
    for (from, at, to, size) in fixups {
        let distance = i32::from(label(to)) - from as i32;
        match size {
            2 => code[at..at + 2].copy_from_slice(&(distance as i16).to_be_bytes()),
            _ => code[at..at + 4].copy_from_slice(&distance.to_be_bytes()),
        }
    }
    let mut c = Vec::new();
    u2(&mut c, m.head[4].parse().unwrap());
    u2(&mut c, m.head[5].parse().unwrap());
    u4(&mut c, code.len() as u32);
    c.extend(&code);
    u2(&mut c, tries.len() as u16);
    for t in tries {
        t[1..4].iter().for_each(|l| u2(&mut c, label(l)));
        u2(&mut c, if t[4] == "any" { 0 } else { pool.class(t[4]) });
    }
    let count_at = c.len();
    u2(&mut c, 0);
    let mut table = |pool: &mut Pool, name: &str, rows: usize, content: Vec<u8>| {
        if rows > 0 {
            u2(&mut c, pool.utf8(name));
            u4(&mut c, content.len() as u32 + 2);
            u2(&mut c, rows as u16);
            c.extend(content);
            c[count_at + 1] += 1;
        }
    };
    let mut content = Vec::new();
    let mut previous = -1;
    let mut known = first_locals(m, class, pool);
    for f in &frames {
        let at = label(f.split_whitespace().nth(1).unwrap());
        let delta = (i32::from(at) - previous - 1) as u16;
        previous = i32::from(at);
        let mut lists = f.split('[').skip(1).map(|l| l.split(']').next().unwrap());
        let mut types = || -> Vec<VerificationType> {
            let list = lists.next().unwrap().split(',').map(str::trim);
            let types = list.filter(|t| !t.is_empty()).map(|t| match t {
                "top" => VerificationType::Top,
                "int" => VerificationType::Integer,
                "float" => VerificationType::Float,
                "long" => VerificationType::Long,
                "double" => VerificationType::Double,
                "null" => VerificationType::Null,
                "this" => VerificationType::UninitializedThis,
                t => match t.strip_prefix("new ") {
                    Some(l) => VerificationType::Uninitialized(label(l)),
                    None => VerificationType::Object(pool.class(&t.replace('{', "["))),
                },
            });
            types.collect()
        };
        let (locals, stack) = (types(), types());
        // In the shortest form, as compilers do: most frames say what has changed.
        let write = |t: VerificationType, out: &mut Vec<u8>| {
            t.write(out);
            Ok::<(), std::convert::Infallible>(())
        };
        let Ok(()) = encode_frame(&mut content, delta, &known, &locals, &stack, write);
        known = locals;
    }
    table(pool, "StackMapTable", frames.len(), content);
    let mut content = Vec::new();
    for l in &lines {
        u2(&mut content, label(l[1]));
        u2(&mut content, l[2].parse().unwrap());
    }
    table(pool, "LineNumberTable", lines.len(), content);
    let mut content = Vec::new();
    for v in &vars {
        u2(&mut content, label(v[1]));
        u2(&mut content, label(v[2]) - label(v[1]));
        u2(&mut content, pool.utf8(v[3]));
        u2(&mut content, pool.utf8(v[4]));
        u2(&mut content, v[5].parse().unwrap());
    }
    table(pool, "LocalVariableTable", vars.len(), content);
    u4(out, c.len() as u32);
    out.extend(c);
}

/// The locals that a method begins with.
fn first_locals(m: &Method, class: &str, pool: &mut Pool) -> Vec<VerificationType> {
    use tare_classfile::descriptor::{MethodDescriptor, class_constant_name};
    let mut out = Vec::new();
    if !m.head[3].split(',').any(|f| f == "static") {
        out.push(match m.head[1].as_str() {
            "<init>" => VerificationType::UninitializedThis,
            _ => VerificationType::Object(pool.class(class)),
        });
    }
    for p in MethodDescriptor::parse(m.head[2].as_bytes()).unwrap().parameters() {
        out.push(match p[0] {
            b'J' => VerificationType::Long,
            b'D' => VerificationType::Double,
            b'F' => VerificationType::Float,
            b'L' | b'[' => {
                let name = std::str::from_utf8(class_constant_name(p)).unwrap();
                VerificationType::Object(pool.class(name))
            }
            _ => VerificationType::Integer,
        });
    }
    out
}

fn insn<'t>(
    words: &[&'t str],
    line: &'t str,
    pool: &mut Pool,
    code: &mut Vec<u8>,
    fixups: &mut Vec<(usize, usize, &'t str, usize)>,
) {
    let at = code.len();
    // `repeat N INSN` fills code up.
    if words[0] == "repeat" {
        for _ in 0..words[1].parse::<u32>().unwrap() {
            insn(&words[2..], line, pool, code, fixups);
        }
        return;
    }
    let wide = words[0] == "wide";
    let words = if wide { &words[1..] } else { words };
    let opcode = opcode_of(words[0]);
    if wide {
        code.push(opcode::op::WIDE);
    }
    code.push(opcode);
    let number = |i: usize| words[i].parse::<i32>().unwrap();
    let local = |code: &mut Vec<u8>, v: i32| match wide {
        true => code.extend((v as u16).to_be_bytes()),
        false => code.push(v as u8),
    };
    let row = opcode::lookup(opcode).unwrap();
    match row.format {
        Format::None | Format::Wide => {}
        Format::Byte | Format::ArrayType => code.push(number(1) as u8),
        Format::Short => code.extend((number(1) as u16).to_be_bytes()),
        Format::Local => local(code, number(1)),
        Format::Iinc => {
            local(code, number(1));
            local(code, number(2));
        }
        Format::Const1 => {
            let index = loadable(words, line, pool);
            code.push(u8::try_from(index).unwrap());
        }
        Format::Const2 => {
            let index = match words[0] {
                "getstatic" | "putstatic" | "getfield" | "putfield" => pool.member(9, words[1]),
                w if w.starts_with("invoke") => pool.member(10, words[1]),
                w if w.starts_with("ldc") => loadable(words, line, pool),
                _ => pool.class(words[1]),
            };
            code.extend(index.to_be_bytes());
        }
        Format::InvokeInterface => {
            code.extend(pool.member(11, words[1]).to_be_bytes());
            code.extend([number(2) as u8, 0]);
        }
        Format::MultiNewArray => {
            code.extend(pool.class(words[1]).to_be_bytes());
            code.push(number(2) as u8);
        }
        Format::Branch2 => {
            fixups.push((at, code.len(), words[1], 2));
            code.extend([0; 2]);
        }
        Format::Branch4 => {
            fixups.push((at, code.len(), words[1], 4));
            code.extend([0; 4]);
        }
        // `tableswitch LOW L... default`, `lookupswitch KEY L KEY L ... default`
        Format::TableSwitch => {
            while !code.len().is_multiple_of(4) {
                code.push(0);
            }
            let (default, cases) = words[2..].split_last().unwrap();
            fixups.push((at, code.len(), default, 4));
            code.extend([0; 4]);
            code.extend(number(1).to_be_bytes());
            code.extend((number(1) + cases.len() as i32 - 1).to_be_bytes());
            for c in cases {
                fixups.push((at, code.len(), c, 4));
                code.extend([0; 4]);
            }
        }
        Format::LookupSwitch => {
            while !code.len().is_multiple_of(4) {
                code.push(0);
            }
            let (default, cases) = words[1..].split_last().unwrap();
            fixups.push((at, code.len(), default, 4));
            code.extend([0; 4]);
            code.extend((cases.len() as i32 / 2).to_be_bytes());
            for c in cases.chunks(2) {
                code.extend(c[0].parse::<i32>().unwrap().to_be_bytes());
                fixups.push((at, code.len(), c[1], 4));
                code.extend([0; 4]);
            }
        }
        Format::InvokeDynamic => panic!("no invokedynamic here"),
    }
}

fn loadable(words: &[&str], line: &str, pool: &mut Pool) -> u16 {
    if let Some((_, text)) = line.split_once('"') {
        let text = pool.utf8(text.trim_end_matches('"'));
        return pool.refer(8, &[text]);
    }
    let entry = |tag: u8, bytes: &[u8]| [&[tag], bytes].concat();
    if let Some(l) = words[1].strip_suffix('l') {
        return pool.add(entry(5, &l.parse::<i64>().unwrap().to_be_bytes()));
    }
    pool.add(entry(3, &words[1].parse::<i32>().unwrap().to_be_bytes()))
}

/// One method as text: instructions with what they name, exception table, frames in full, lines.
pub fn disassemble(bytes: &[u8], method: &str) -> String {
    let class = ClassFile::parse(bytes).expect("a well-formed class");
    let found = class
        .methods
        .iter()
        .find(|m| class.pool.utf8(m.name_index).is_ok_and(|n| n == method.as_bytes()));
    let found = found.expect("such a method");
    let code = found.attributes.find(&class.pool, "Code").expect("code");
    let code = Code::parse(&code).expect("well-formed code");
    let mut out = format!("stack {} locals {}\n", code.max_stack, code.max_locals);
    for i in code.insns() {
        let i = i.expect("well-formed instructions");
        let wide = if i.wide { "wide " } else { "" };
        write!(out, "{}: {wide}{}", i.offset, i.info().mnemonic).unwrap();
        if let Some(c) = i.constant() {
            let text = print::describe(&class.pool, c);
            write!(out, " {}", text.split_once(' ').map_or(text.as_str(), |t| t.1)).unwrap();
        }
        if i.bytes.len() > 1
            && let Some(l) = i.local()
        {
            write!(out, " {l}").unwrap();
        }
        if let Some(n) = i.number() {
            write!(out, " {n}").unwrap();
        }
        if let Some(t) = i.target() {
            write!(out, " {t}").unwrap();
        }
        if let Some(s) = i.switch() {
            s.cases().for_each(|(k, t)| write!(out, " {k}:{t}").unwrap());
            write!(out, " else:{}", s.default_target()).unwrap();
        }
        out.push('\n');
    }
    let name = |c: u16| String::from_utf8_lossy(class.pool.class_name(c).unwrap()).into_owned();
    for e in code.exceptions() {
        let ty = if e.catch_type == 0 { "any".to_owned() } else { name(e.catch_type) };
        writeln!(out, "try {}-{} {} {ty}", e.start, e.end, e.handler).unwrap();
    }
    if let Some(a) = code.attributes.find(&class.pool, "StackMapTable") {
        let mut frames = Frames::parse(a.reader()).unwrap();
        let mut locals: Vec<String> = initial(&class, found);
        let show = |t: VerificationType| match t {
            VerificationType::Top => "top".to_owned(),
            VerificationType::Integer => "int".to_owned(),
            VerificationType::Float => "float".to_owned(),
            VerificationType::Double => "double".to_owned(),
            VerificationType::Long => "long".to_owned(),
            VerificationType::Null => "null".to_owned(),
            VerificationType::UninitializedThis => "this".to_owned(),
            VerificationType::Object(c) => name(c),
            VerificationType::Uninitialized(o) => format!("new {o}"),
        };
        while let Some(f) = frames.next_frame().unwrap() {
            let mut stack = Vec::new();
            match f.kind {
                FrameKind::Same => {}
                FrameKind::SameStack1(t) => stack.push(show(t)),
                FrameKind::Chop(n) => locals.truncate(locals.len() - usize::from(n)),
                FrameKind::Append(l) => locals.extend(l.iter().map(show)),
                FrameKind::Full { locals: l, stack: s } => {
                    locals = l.iter().map(show).collect();
                    stack = s.iter().map(show).collect();
                }
            }
            writeln!(out, "frame {} [{}] [{}]", f.offset, locals.join(", "), stack.join(", "))
                .unwrap();
        }
    }
    if let Some(a) = code.attributes.find(&class.pool, "LineNumberTable") {
        for row in a.rows::<4>().unwrap() {
            let l = tare_classfile::attributes::LineNumber::from_row(*row);
            writeln!(out, "line {} {}", l.start, l.line).unwrap();
        }
    }
    if let Some(a) = code.attributes.find(&class.pool, "LocalVariableTable") {
        for row in a.rows::<10>().unwrap() {
            let v = tare_classfile::attributes::LocalVariable::from_row(*row);
            writeln!(out, "var {}-{} {}", v.start, v.start + v.len, v.local).unwrap();
        }
    }
    out
}

fn initial(class: &ClassFile<'_>, m: &tare_classfile::Member<'_>) -> Vec<String> {
    use tare_classfile::descriptor::{MethodDescriptor, class_constant_name};
    let mut out = Vec::new();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    if m.access_flags & 8 == 0 {
        let init = class.pool.utf8(m.name_index).unwrap() == b"<init>";
        out.push(if init { "this".to_owned() } else { text(class.name().unwrap()) });
    }
    let d = MethodDescriptor::parse(class.pool.utf8(m.descriptor_index).unwrap()).unwrap();
    for p in d.parameters() {
        out.push(match p[0] {
            b'J' => "long".to_owned(),
            b'D' => "double".to_owned(),
            b'F' => "float".to_owned(),
            b'L' | b'[' => text(class_constant_name(p)),
            _ => "int".to_owned(),
        });
    }
    out
}
