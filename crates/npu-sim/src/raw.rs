//! Stand-in for `npu_mc::raw` until that exists.
#![allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawInst {
    Rr {
        op: u8,
        dst: u8,
        src0: u8,
        src1: u8,
        long: bool,
        dst_v: bool,
        src0_v: bool,
        src1_v: bool,
        m: bool,
    },
    Ri {
        op: u8,
        dst: u8,
        src0: u8,
        imm: i32,
        dst_v: bool,
        src0_v: bool,
        m: bool,
    },
    Mvi {
        op: u8,
        dst: u8,
        imm: u32,
        dst_v: bool,
        m: bool,
    },
    Mem {
        op: u8,
        reg: u8,
        base: u8,
        offset: i32,
        long: bool,
        shared: bool,
        m: bool,
    },
    Ctr {
        op: u8,
        reg0: u8,
        reg1: u8,
    },
    Jba {
        op: u8,
        reg: u8,
        offset: i32,
    },
    Jra {
        op: u8,
        offset: i32,
    },
    Undefined,
}
fn f(w: u32, lo: u32, n: u32) -> u32 {
    (w >> lo) & ((1 << n) - 1)
}
fn s(w: u32, lo: u32, n: u32) -> i32 {
    ((w << (32 - lo - n)) as i32) >> (32 - n)
}
fn b(w: u32, lo: u32) -> bool {
    w >> lo & 1 != 0
}
pub fn split(w: u32) -> RawInst {
    let r = |lo| f(w, lo, 6) as u8;
    match w >> 24 {
        0x00..=0x3f => RawInst::Rr {
            op: f(w, 24, 6) as u8,
            dst: r(18),
            src0: r(12),
            src1: r(6),
            long: b(w, 4),
            dst_v: b(w, 3),
            src0_v: b(w, 2),
            src1_v: b(w, 1),
            m: b(w, 0),
        },
        0x40..=0x5f => RawInst::Ri {
            op: f(w, 24, 5) as u8,
            dst: r(18),
            src0: r(12),
            imm: s(w, 3, 9),
            dst_v: b(w, 2),
            src0_v: b(w, 1),
            m: b(w, 0),
        },
        0x60..=0x67 => RawInst::Mvi {
            op: f(w, 24, 3) as u8,
            dst: r(18),
            imm: f(w, 2, 16),
            dst_v: b(w, 1),
            m: b(w, 0),
        },
        0x68..=0x6f => RawInst::Ctr {
            op: f(w, 24, 3) as u8,
            reg0: r(18),
            reg1: r(12),
        },
        0x70..=0x77 => RawInst::Jba {
            op: f(w, 24, 3) as u8,
            reg: r(18),
            offset: s(w, 0, 18),
        },
        0x78..=0x7f => RawInst::Jra {
            op: f(w, 24, 3) as u8,
            offset: s(w, 0, 18),
        },
        0x80..=0xbf => RawInst::Mem {
            op: f(w, 24, 6) as u8,
            reg: r(18),
            base: r(12),
            offset: s(w, 3, 9),
            long: b(w, 2),
            shared: b(w, 1),
            m: b(w, 0),
        },
        _ => RawInst::Undefined,
    }
}
macro_rules! ops { ($name:ident { $($v:ident = $n:expr),* $(,)? }) => {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum $name { $($v = $n),* }
    impl $name { pub const fn from_code(c: u8) -> Option<Self> { match c { $($n => Some(Self::$v),)* _ => None } } }
} }
ops!(AluOp { Not=0, Or=1, And=2, Xor=3, Add=4, Sub=5, Mull=6, Mulhs=7, Mulhu=8, Ashr=9, Shr=10, Shl=11, Clz=12, Ctz=13,
  Cmpeq=14, Cmpne=15, Cmpgt=16, Cmpge=17, Cmplt=18, Cmple=19, Cmpugt=20, Cmpuge=21, Cmpult=22, Cmpule=23, Shuffle=24, Getlane=25,
  Move=32, Fadd=33, Fsub=34, Fmul=35, Fdiv=36, Cmpfeq=37, Cmpfne=38, Cmpfgt=39, Cmpfge=40, Cmpflt=41, Cmpfle=42,
  Sext8=43, Sext16=44, Sext32=45, F32tof64=46, F64tof32=47, Itof=48, Ftoi=49, CrtMask=50, Crp=63 });
ops!(MviOp { Moveil=0, Moveih=1, Movei=2 });
ops!(MemOp { Load32S8=0, Load32S16=1, Load32=2, Load64=3, Load32U8=4, Load32U16=5, Load32U=6, LoadV16i8=7, LoadV16i16=8, LoadV16i32=9, LoadV8i64=10,
  LoadV16u8=11, LoadV16u16=12, LoadV16u32=13, LoadgI8=14, LoadgI16=15, LoadgI32=16, LoadgI64=17, LoadgU8=18, LoadgU16=19, LoadgU32=20, Store328=32, Store3216=33, Store32=34, Store64=35, StoreV16i8=36, StoreV16i16=37, StoreV16i32=38,
  StoreV8i64=39, Stores8=40, Stores16=41, Stores32=42 });
ops!(CtrOp { Barrier=0, BarrierThread=1, Flush=2, ReadCr=3, WriteCr=4, DcacheInv=5 });
ops!(JbaOp { Jmp=0, Jmpsr=1, Jsys=2, Jret=3, Jeret=4, Beqz=5, Bnez=6 });
ops!(JraOp { Jmp=0, Jmpsr=1, Jsys=2, Jret=3, Jeret=4, Beqz=5, Bnez=6 });

pub struct Info {
    pub access_bytes: u8,
    pub alignment: u8,
}
impl MemOp {
    pub const fn info(self) -> Info {
        Info {
            access_bytes: self.access_bytes(),
            alignment: self.alignment(),
        }
    }

    pub const fn access_bytes(self) -> u8 {
        match self as u8 {
            0 | 4 | 7 | 11 | 14 | 32 | 36 | 40 => 1,
            1 | 5 | 8 | 12 | 33 | 37 | 41 => 2,
            3 | 10 | 35 | 39 => 8,
            _ => 4,
        }
    }
    pub const fn alignment(self) -> u8 {
        match self as u8 {
            1 | 5 | 33 | 41 => 2,
            2 | 6 | 34 | 42 => 4,
            7 | 11 | 36 => 16,
            8 | 12 | 37 => 32,
            9 | 13 | 38 => 64,
            _ => 1,
        }
    }
}
