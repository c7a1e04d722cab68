//! Writes `TareLayout.java`, the numbers that the probe runtime shares with the agent and the
//! readers. They and their meaning are `tare_arena::layout`'s; here are only their names in Java.

use tare_arena::layout::{
    self, Holds, header, kept, node, others, own, page, record, region, ring, spread, stack, tails,
    threads, tree,
};

/// The constants of a module, each under its own name behind a prefix.
macro_rules! all_of {
    ($prefix:literal, $module:ident: $($name:ident),+ $(,)?) => {
        [$((concat!($prefix, stringify!($name)), $module::$name as i64)),+]
    };
}

/// The source of the class.
pub fn java() -> String {
    let mut lines = String::new();
    for (name, value) in constants() {
        lines += &format!("    static final int {name} = {value};\n");
    }
    let left = threads::LEFT;
    format!(
        "package java.lang;\n\n\
         /** Written by the build from crates/arena/src/layout.rs, which explains the numbers. */\n\
         final class TareLayout {{\n{lines}\n    \
             static final long LEFT = {left};\n    \
             static final long LOW = 0xffff_ffffL;\n    \
             static final long TABLE_MASK = TABLE_ENTRIES - 1;\n\n    \
             private TareLayout() {{}}\n\
         }}\n"
    )
}

fn constants() -> Vec<(&'static str, i64)> {
    let mut all = Vec::new();
    all.extend(all_of!["", node: COUNT, METHOD, KIDS, SLOT, SLOTS, SLOTS_LOG, PARENT, SIBLING, START, TOTAL]);
    all.extend(all_of!["", node: FIRST_TOTAL, TIMED_CALLS, AT, SQUARES, FIRST_CALLS, LONG]);
    all.extend(all_of!["", node: CALLING, BYTECODES, OBJECTS, BYTES, MADE, MADE_BYTES]);
    all.extend(all_of!["H_", header: HOLDS, BUMP, LIMIT, RESERVE, REFUSED, LOST, NODE, LOCK]);
    all.extend(all_of!["H_", header: POOL, ROOTS, TREES, ENDED, DEPTH, CPU, FOLD, FULL, PAUSED]);
    all.extend(all_of!["H_", header: PRUNING, PRUNED, DROPPED, RING, WAIT, EVERY, RANDOM, SEED]);
    all.extend(all_of!["H_", header: NOTED, TOLD, KEEPS, FOLLOW, KEPT, KEPT_AT, SPARE, LONG]);
    all.extend(all_of!["K_", kept: SEEN, FIRST, PLACE, TOOK]);
    all.extend(all_of!["KEPT_", kept: ROOTS, NODES]);
    all.extend(all_of!["", node: MADE_NEXT, SQUARE_CALLS, SQUARE_OWN, SQUARE_TOTAL]);
    all.extend(all_of!["", node: WITH_OWN, WITH_TOTAL, WITH_CALLS]);
    all.extend(all_of!["", node: SPREAD, TO]);
    all.extend(all_of!["H_", header: SPREADS, SPREADS_MOST, UNSPREAD]);
    all.extend(all_of!["T_", tree: SPREADS]);
    all.extend(all_of!["SPREAD_", spread: STRETCHES, BYTES, FIRST, DROPPED, SHIFT]);
    all.extend(all_of!["OTHERS_", others: WEIGHTS, TICKS, SPREAD, SQUARES, BESIDE]);
    all.extend(
        all_of!["T_", tree: SPARE_TREE, DRAWN, OWNER, MADE, MADE_LAST, KEPT, BEGUN, TOOK, WEIGHT],
    );
    all.extend(all_of!["", tree: FLAG_FOLLOWED]);
    all.extend(all_of!["", layout: UNFOLLOWED]);
    all.extend(all_of!["", layout: PAGE, EXTENT, TREES_MAX, LIST_MAX]);
    all.extend(all_of!["P_", page: KIND, TREE, PAGES, NOBODY, HEAD]);
    all.extend(all_of!["", page: KIND_TREE, KIND_NODES, KIND_TABLE, KIND_REGION, KIND_RING]);
    all.extend(all_of!["", page: KIND_STACK]);
    all.extend(all_of!["T_", tree: THREAD, FREE, END, NEXT, FLAGS, ADJUST, TABLE, NAME, NAME_MAX]);
    all.extend(all_of!["T_", tree: EVERY, LEFT, STACK, FREED, SIEVE, REGIONS, ROOT]);
    all.extend(all_of!["", tree: FLAG_LEAVES, FLAG_VIRTUAL, FLAG_SHARED]);
    all.extend(all_of!["", layout: ROOT, REST, CALIBRATION, TYPES, FREED, FROM_THREAD, FROM_TASK]);
    all.extend(all_of!["S_", stack: LEFT, INTERVAL, RANDOM, FIRST]);
    all.extend(all_of!["", stack: PLACE_BYTES, PLACE_NODE]);
    all.extend(all_of!["R_", region: NEXT, REGION, COUNT, TOTAL, MIN, MAX, TIMES, BYTES, SHIFT]);
    all.extend(all_of!["G_", ring: SIZE, DEPTH, HEAD, LIMIT, GAP_SINCE, GAP_EVENTS, GAP_DEPTH]);
    all.extend(all_of!["G_", ring: DROPPED, WAITED, HELD, MASK]);
    all.extend(all_of!["", ring: RECORD]);
    all.extend(all_of!["RING_", ring: LEAST]);
    all.extend(all_of!["TAILS_", tails: AT_BIT]);
    all.extend(all_of!["TAIL_", tails: SHIFT]);
    all.extend(all_of!["", record: ENTRY, EXIT, THROWN, CAUGHT, GAP, THREAD, HELD, UTF16]);
    all.extend(all_of!["TABLE_", threads: ENTRIES]);
    all.extend(all_of!["", own: RING_SLOTS, RING_HEAD, RING_TAIL, RING_STATE, RING_ORDER]);
    all.extend(all_of!["", own: RING_CALLS, RING_FIRST, STATE_LOADING, STATE_READY, STATE_OVER]);
    all.extend(all_of!["", own: ORDER_SERVE, ORDER_DRAIN, ORDER_END, ORDER_LEAVE]);
    all.extend(all_of!["", own: TASKS, REVEALED_ENTRIES]);
    let holds = |what: Holds| i64::from(what.code());
    all.extend([
        ("HOLDS_TIMES", holds(Holds::Times)),
        ("HOLDS_BYTECODES", holds(Holds::Bytecodes)),
        ("HOLDS_ALLOCATIONS", holds(Holds::Allocations)),
        ("HOLDS_TRACE", holds(Holds::Trace)),
        ("HOLDS_SAMPLES", holds(Holds::Samples)),
        ("HOLDS_SITES", holds(Holds::Sites)),
        ("HOLDS_SOME_TIMES", holds(Holds::SomeTimes)),
        ("HOLDS_FOLLOWED", holds(Holds::Followed)),
        ("STACK", stack::BYTES as i64),
        ("TABLE", threads::AT as i64),
        ("NAME_PART", i64::from(record::NAME)),
        ("VIRTUAL_THREAD", i64::from(record::VIRTUAL)),
    ]);
    all
}
