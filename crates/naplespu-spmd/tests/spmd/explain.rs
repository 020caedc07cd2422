//! Remarks about each kind of access, branch, loop, division and call.

use crate::kernels::parse;
use crate::run::options;

/// Returns the report of a kernel with sixteen lanes.
fn explained(text: &str) -> Vec<String> {
    let functions = parse(text);
    let (kernel, callees) = functions.split_first().unwrap();
    let (_, remarks) = naplespu_spmd::compile_explained(kernel, callees, &options(16, 16)).unwrap();
    let report = naplespu_spmd::report(&remarks, |at| at.bits().to_string());
    report.lines().map(str::to_owned).collect()
}

#[test]
fn each_kind_has_its_remark() {
    let report = explained(
        "
function %kernel(i32, i32) system_v {
    region0 = 68 \"scratchpad\"
    fn0 = %__builtin_npu_global_id_x() -> i32
    fn1 = %square(i32) -> i32
    fn2 = %log(i32)
block0(v0: i32, v1: i32):
    v2 = call fn0()
    v3 = iconst.i32 2
    v4 = ishl v2, v3
    v5 = iadd v0, v4
@0001 v6 = icmp ult v2, v1
@0001 brif v6, block1, block7
block1:
@0002 v7 = load.i32 notrap aligned v5
@0003 v8 = load.i32 notrap aligned v5+4
@0004 v9 = load.i32 notrap aligned v0
@0005 v10 = ishl v4, v3
@0005 v11 = iadd v0, v10
@0005 v12 = load.i32 notrap aligned v11
@0006 v13 = band v7, v4
@0006 v14 = load.i32 notrap aligned region0 v13
@0007 v15 = udiv v7, v8
@0008 v16 = udiv v7, v1
@0009 v17 = call fn1(v7)
@000a call fn2(v7)
@000b v18 = band v7, v3
@000b brif v18, block2, block3
block2:
@000c store notrap aligned v15, v5
    jump block3
block3:
@000d v19 = atomic_rmw.i32 notrap aligned add v0, v16
    v40 = iconst.i32 0
    jump block4(v40)
block4(v20: i32):
@000e v21 = icmp ult v20, v14
@000e brif v21, block5, block6
block5:
    v22 = iadd v20, v3
    jump block4(v22)
block6:
@000f istore8 notrap aligned v17, v5
@0010 store notrap aligned v12, v5
    jump block7
block7:
    return
}
function %square(i32) -> i32 {
block0(v0: i32):
    v1 = imul v0, v0
    return v1
}
function %log(i32) {
block0(v0: i32):
    store notrap aligned v0, v0
    return
}",
    );
    for expected in [
        "1: branch, check of a bound: evaluated once for a row of work-groups; \
         otherwise a copy without masks if all lanes take the same side; otherwise a mask",
        "2: load of 4 bytes, consecutive: one vector access",
        "3: load of 4 bytes, consecutive: two vector accesses: lane 0 need not be at the start of a cache line",
        "4: load of 4 bytes, uniform: one scalar access",
        "5: load of 4 bytes, strided by 16 bytes: lane by lane: the addresses are not consecutive",
        "6: load of 4 bytes in the scratchpad, varying: gather",
        "7: udiv.i32: lane by lane: the divisor differs between the lanes, or is no word",
        "8: udiv.i32: multiplication by the reciprocal on vectors",
        "9: call of square: vector version",
        "10: call of log: lane by lane: the callee does not only compute its results",
        "11: branch, varying: a mask",
        "12: store of 4 bytes, consecutive: one vector access, under a mask unless all lanes are active",
        "13: atomic operation of 4 bytes, uniform: lane by lane: it is atomic",
        "14: loop: continues while a lane is in it",
        "15: store of 1 byte, strided by 4 bytes: lane by lane: only words have vector accesses",
        "16: store of 4 bytes, consecutive: one vector access; \
         otherwise one vector access, under a mask unless all lanes are active",
    ] {
        assert!(
            report.iter().any(|line| line == expected),
            "{expected} is not in {report:#?}"
        );
    }
    assert!(
        !report.iter().any(|line| line.starts_with("1: branch, uniform")),
        "{report:#?}"
    );
    let place = |at: &str| {
        report
            .iter()
            .position(|line| line.starts_with(&format!("{at}:")))
            .unwrap()
    };
    assert!(
        place("5") < place("3") && place("3") < place("2") && place("2") < place("4"),
        "{report:#?}"
    );
}
