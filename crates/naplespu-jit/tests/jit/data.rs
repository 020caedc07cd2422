//! Tests of data objects: addresses in them, alignment, tables of functions, memory shared with the
//! host.

use super::*;

#[test]
fn data_objects_hold_addresses() {
    let mut module = module();
    // The table is defined before its entries.
    let table = module.declare_data("table", Linkage::Local, false, false).unwrap();
    let double = declare(&mut module, "double", Linkage::Export, &words(1, 1));
    let numbers = module.declare_data("numbers", Linkage::Local, true, false).unwrap();
    let mut description = DataDescription::new();
    description.define(vec![0xee; 23].into());
    let func = module.declare_func_in_data(double, &mut description);
    description.write_function_addr(0, func);
    let gv = module.declare_data_in_data(numbers, &mut description);
    description.write_data_addr(4, gv, 8);
    description.write_data_addr(8, gv, -12);
    let own = module.declare_data_in_data(table, &mut description);
    description.write_data_addr(12, own, 0);
    // Addends wrap modulo 2^32, and locations need no alignment.
    description.write_data_addr(17, gv, (1 << 32) + 1);
    module.define_data(table, &description).unwrap();

    assert!(module.data_address(numbers).is_none());
    let id = data(&mut module, "numbers", &[1, 2, 3]);
    assert_eq!(id, numbers);
    define(&mut module, DOUBLE);
    module.finalize_definitions().unwrap();

    let at = module.data_address(table).unwrap();
    let numbers_at = module.data_address(numbers).unwrap();
    assert_eq!(module.data_size(table), Some(23));
    assert_eq!(module.symbol_address("table"), Some(at));
    assert_eq!(
        module.read_words(at, 4),
        [
            module.function_address(double).unwrap(),
            numbers_at + 8,
            numbers_at - 12,
            at
        ]
    );
    assert_eq!(module.read_word(at + 17), numbers_at + 1);
    let mut rest = [0; 2];
    module.read_memory(at + 21, &mut rest);
    assert_eq!(rest, [0xee; 2]);
    let mut bytes = [0; 3];
    module.read_memory(numbers_at, &mut bytes);
    assert_eq!(bytes, [1, 2, 3]);
}

#[test]
fn data_objects_are_aligned_and_apart() {
    let mut module = module();
    let mut ends = Vec::new();
    for shift in (0..=12).chain([20]) {
        for size in [0usize, 1, 5, 64, 5000] {
            let id = module.declare_anonymous_data(true, false).unwrap();
            let mut description = DataDescription::new();
            description.define_zeroinit(size);
            description.set_align(1 << shift);
            module.define_data(id, &description).unwrap();
            let address = module.data_address(id).unwrap();
            assert!(address.is_multiple_of(1 << shift));
            ends.push((address, address + size.max(1) as u32));
        }
    }
    ends.sort_unstable();
    assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ends:x?}");
    // The default alignment suffices for vectors.
    let id = data(&mut module, "plain", &[0; 3]);
    assert!(module.data_address(id).unwrap().is_multiple_of(64));
}

#[test]
fn calls_through_a_table_of_functions() {
    let mut module = module();
    let ids = [define(&mut module, DOUBLE), define(&mut module, SQUARE)];
    let table = module.declare_data("table", Linkage::Local, false, false).unwrap();
    let mut description = DataDescription::new();
    description.define_zeroinit(8);
    for (index, id) in (0..).zip(ids) {
        let func = module.declare_func_in_data(id, &mut description);
        description.write_function_addr(4 * index, func);
    }
    module.define_data(table, &description).unwrap();
    let pick = define(
        &mut module,
        "function %pick(i32, i32) -> i32 {
            gv0 = symbol colocated %table
            sig0 = (i32) -> i32 system_v
        block0(v0: i32, v1: i32):
            v2 = symbol_value.i32 gv0
            v3 = iconst.i32 2
            v4 = ishl v0, v3
            v5 = iadd v2, v4
            v6 = load.i32 aligned v5
            v7 = call_indirect sig0, v6(v1)
            return v7
        }",
    );
    assert_eq!(call(&mut module, pick, &[0, 7]).unwrap(), 14);
    assert_eq!(call(&mut module, pick, &[1, 7]).unwrap(), 49);
    let at = module.data_address(table).unwrap();
    let square = module.read_word(at + 4);
    let results = module.call_address(square, &words(1, 1), &[word(9)]).unwrap();
    assert_eq!(results, [word(81)]);
}

#[test]
fn data_that_cannot_be_placed_is_refused() {
    let mut module = lenient_module();
    let id = module.declare_data("object", Linkage::Local, true, false).unwrap();
    let mut description = DataDescription::new();
    let error = link_error(module.define_data(id, &description));
    assert_eq!(error, LinkError::NoContents("object".to_owned()));

    description.define_zeroinit(6);
    for align in [0, 3, 1 << 40] {
        description.align = Some(align);
        let error = link_error(module.define_data(id, &description));
        let name = "object".to_owned();
        assert_eq!(error, LinkError::Alignment { name, align });
    }
    description.align = None;
    let own = module.declare_data_in_data(id, &mut description);
    description.write_data_addr(3, own, 0);
    let error = link_error(module.define_data(id, &description));
    let name = "object".to_owned();
    assert_eq!(error, LinkError::OutOfBounds { name, offset: 3 });

    let mut huge = DataDescription::new();
    for size in [0xf000_0000, usize::MAX] {
        huge.init = cranelift_module::Init::Zeros { size };
        let error = module.define_data(id, &huge).unwrap_err();
        assert!(matches!(error, ModuleError::Allocation { .. }), "{error}");
    }
    // The failed definitions did not use up the name, and large zeroed objects need no memory.
    huge.init = cranelift_module::Init::Zeros { size: 0x6000_0000 };
    module.define_data(id, &huge).unwrap();
    assert!(module.machine().memory().resident_bytes() < 1 << 20);
}

#[test]
fn memory_is_shared_with_the_host() {
    let mut module = module();
    let sum = define(
        &mut module,
        "function %sum(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            v2 = iconst.i32 0
            jump block1(v0, v1, v2)
        block1(v3: i32, v4: i32, v5: i32):
            brif v4, block2, block3
        block2:
            v6 = load.i32 aligned v3
            v7 = iadd v5, v6
            store aligned v7, v3
            v8 = iconst.i32 4
            v9 = iadd v3, v8
            v10 = iconst.i32 1
            v11 = isub v4, v10
            jump block1(v9, v11, v7)
        block3:
            return v5
        }",
    );
    let buffer = module.allocate(4 * 100, 4096).unwrap();
    assert!(buffer.is_multiple_of(4096));
    assert_ne!(module.allocate(1, 1).unwrap(), buffer);
    assert!(module.allocate(1, 3).is_err());
    assert!(module.allocate(u32::MAX, 1).is_err());
    let numbers: Vec<u32> = (1..=100).collect();
    module.write_words(buffer, &numbers).unwrap();
    assert_eq!(call(&mut module, sum, &[buffer as i32, 100]).unwrap(), 5050);
    let sums: Vec<u32> = (1..=100).map(|n| n * (n + 1) / 2).collect();
    assert_eq!(module.read_words(buffer, 100), sums);
    let mut bytes = [0; 3];
    module.read_memory(buffer + 4 * 99 + 1, &mut bytes);
    assert_eq!(bytes, [(5050 >> 8) as u8, 0, 0]);

    for value in values() {
        module.write_memory(buffer, &[0xff; 32]).unwrap();
        module.write_value(buffer + 1, &value).unwrap();
        assert_eq!(module.read_value(buffer + 1, value.ty()), Some(value.clone()));
        let mut around = [0; 32];
        module.read_memory(buffer, &mut around);
        let end = 1 + value.ty().bytes() as usize;
        assert!(
            around[0] == 0xff && around[end..].iter().all(|&byte| byte == 0xff),
            "{value}"
        );
    }
    assert_eq!(module.read_value(buffer, types::I32X16), None);
    assert_eq!(module.read_value(buffer, types::INVALID), None);

    let config = npu_sim::Config {
        memory_limit: 1 << 16,
        ..npu_sim::Config::default()
    };
    let mut small = NpuModule::with_config(module.npu_isa().clone(), config).unwrap();
    assert!(matches!(
        small.write_memory(buffer, &[1; 1 << 17]),
        Err(LinkError::MemoryFull(_))
    ));
}

#[test]
fn data_in_the_scratchpad() {
    let mut module = module();
    let declare = |module: &mut NpuModule, name: &str, contents: &[u8], align| {
        let id = module.declare_data(name, Linkage::Export, true, false).unwrap();
        let mut description = DataDescription::new();
        description.define(contents.into());
        description.custom_section = Some("scratchpad".to_owned());
        description.align = Some(align);
        (id, description)
    };
    let (table, description) = declare(&mut module, "table", &[1, 0, 0, 0, 2, 0, 0, 0], 4);
    module.define_data(table, &description).unwrap();
    // A word in the scratchpad with a scratchpad address, and one with an address in main memory.
    let (pointers, mut description) = declare(&mut module, "pointers", &[0; 8], 64);
    let main = data(&mut module, "main", &[7, 0, 0, 0]);
    let to_table = module.declare_data_in_data(table, &mut description);
    description.write_data_addr(0, to_table, 4);
    let to_main = module.declare_data_in_data(main, &mut description);
    description.write_data_addr(4, to_main, 0);
    module.define_data(pointers, &description).unwrap();

    let sum = define(
        &mut module,
        "function %sum() -> i32, i32 system_v {
            region0 = 68 \"scratchpad\"
            gv0 = symbol %pointers
        block0:
            v0 = symbol_value.i32 gv0
            v1 = load.i32 region0 aligned v0
            v2 = load.i32 region0 aligned v0+4
            v3 = load.i32 region0 aligned v1
            v4 = load.i32 aligned v2
            store region0 aligned v4, v1
            return v3, v4
        }",
    );
    assert_eq!(module.call(sum, &[]).unwrap(), [word(2), word(7)]);
    let address = module.data_address(table).unwrap() as usize;
    assert_eq!(
        module.machine().scratchpad()[address..address + 8],
        [1, 0, 0, 0, 7, 0, 0, 0]
    );
    assert_eq!(module.data_address(pointers).unwrap() % 64, 0);

    let (large, mut description) = declare(&mut module, "large", &[], 1);
    description.init = cranelift_module::Init::Zeros { size: 1 << 16 };
    let refused = module.define_data(large, &description);
    assert!(matches!(refused, Err(ModuleError::Allocation { .. })), "{refused:?}");
}
