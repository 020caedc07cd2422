// The tables of the GenericEnum and GenericTable records.

/// `KindEnum`; the discriminant is the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum KindEnum {
    /// `Fast`
    Fast = 1,
    /// `Slow`
    Slow = 5,
}
impl KindEnum {
    /// All of them by number.
    pub const ALL: &'static [KindEnum] = &[
        KindEnum::Fast,
        KindEnum::Slow,
    ];
    /// The name in td.
    pub const fn name(self) -> &'static str {
        match self {
            KindEnum::Fast => "Fast",
            KindEnum::Slow => "Slow",
        }
    }
    /// The number.
    pub const fn value(self) -> u8 {
        self as u8
    }
    /// The one with this number.
    pub const fn from_value(value: u8) -> Option<KindEnum> {
        Some(match value {
            1 => KindEnum::Fast,
            5 => KindEnum::Slow,
            _ => return None,
        })
    }
}

/// A row of `Regs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegRow {
    /// `Name`.
    pub name: &'static str,
    /// `Encoding`.
    pub encoding: u16,
    /// `K`.
    pub k: KindEnum,
    /// `Writable`.
    pub writable: bool,
    /// `Cost`.
    pub cost: i64,
    /// `T`.
    pub t: &'static str,
}

/// `Regs`, sorted by its primary key.
pub static REGS: [RegRow; 3] = [
    RegRow { name: "c", encoding: 0x3, k: KindEnum::Fast, writable: false, cost: 0, t: " \"x\" " },
    RegRow { name: "b", encoding: 0x7, k: KindEnum::Fast, writable: true, cost: 4, t: " \"x\" " },
    RegRow { name: "a", encoding: 0xc, k: KindEnum::Slow, writable: false, cost: 9, t: " \"x\" " },
];

/// The row of `Regs` with this key.
pub fn lookup_reg_by_encoding(encoding: u16) -> Option<&'static RegRow> {
    let at = REGS.binary_search_by(|row| row.encoding.cmp(&encoding)).ok()?;
    REGS.get(at)
}

static REGS_BY_LOOKUP_REG_BY_NAME: [u32; 3] = [2, 1, 0];

/// The row of `Regs` with this key.
pub fn lookup_reg_by_name(name: &str) -> Option<&'static RegRow> {
    let at = REGS_BY_LOOKUP_REG_BY_NAME.binary_search_by(|row| REGS[*row as usize].name.cmp(name)).ok()?;
    REGS.get(REGS_BY_LOOKUP_REG_BY_NAME[at] as usize)
}

static REGS_BY_REGS_OF_KIND: [u32; 3] = [0, 1, 2];

/// The rows of `Regs` with this key.
pub fn regs_of_kind(k: KindEnum, writable: bool) -> impl Iterator<Item = &'static RegRow> {
    let start = REGS_BY_REGS_OF_KIND.partition_point(|row| (REGS[*row as usize].k, REGS[*row as usize].writable) < (k, writable));
    let end = REGS_BY_REGS_OF_KIND.partition_point(|row| (REGS[*row as usize].k, REGS[*row as usize].writable) <= (k, writable));
    REGS_BY_REGS_OF_KIND[start..end].iter().map(|row| &REGS[*row as usize])
}
