//! What the JVM itself holds, and the threads with their stacks.

/// Why an object is held by the JVM.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub enum RootKind {
    /// A running thread.
    Thread,
    /// A local variable of a method in Java.
    Local,
    /// A local reference of native code, and what else is on its stack.
    JniLocal,
    NativeStack,
    /// What a thread is blocked at.
    ThreadBlock,
    /// A global reference of native code.
    JniGlobal,
    /// A class that the JVM never unloads.
    SystemClass,
    /// A lock that a thread is in or waits for.
    Monitor,
    Interned,
    Other,
    /// Something that a dump lists although nothing holds it.
    Unreachable,
}

impl RootKind {
    pub fn name(self) -> &'static str {
        match self {
            RootKind::Thread => "thread",
            RootKind::Local => "local variable",
            RootKind::JniLocal => "JNI local reference",
            RootKind::NativeStack => "native stack",
            RootKind::ThreadBlock => "thread block",
            RootKind::JniGlobal => "JNI global reference",
            RootKind::SystemClass => "system class",
            RootKind::Monitor => "monitor in use",
            RootKind::Interned => "interned string",
            RootKind::Other => "the JVM itself",
            RootKind::Unreachable => "nothing",
        }
    }

    /// Whether it is a part of a thread's stack.
    pub fn is_of_stack(self) -> bool {
        matches!(
            self,
            RootKind::Local | RootKind::JniLocal | RootKind::NativeStack | RootKind::ThreadBlock
        )
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Root {
    pub object: u64,
    pub kind: RootKind,
    /// The thread by its number in [`Threads`].
    pub thread: Option<u32>,
    /// The frame, from the innermost one at 0.
    pub frame: Option<u32>,
}

#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// The object of `java.lang.Thread`; 0 if there is none.
    pub object: u64,
    /// Its name, if the dump has it apart from the object.
    pub name: Option<String>,
    pub is_virtual: bool,
    /// From the innermost: `com.acme.Orders.place(Orders.java:17)`.
    pub frames: Vec<String>,
}
