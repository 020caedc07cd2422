//! Addresses of sections: at the ends of ranges, and with different alignments.

use npu_link::{Input, LinkOptions, MemoryLayout, Program, ProgramError, link_program};
use npu_mc::asm;
use npu_mc::machine::{CACHE_LINE, SCRATCHPAD_SIZE};
use npu_mc::reloc::elf::SCRATCHPAD_SECTION;

fn assembled(text: &str) -> npu_mc::asm::Object {
    asm::assemble(text, &asm::Options::default()).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"))
}

fn linked(text: &str, layout: MemoryLayout) -> Result<Program, Vec<ProgramError>> {
    let input = Input {
        name: "a".to_owned(),
        object: assembled(&format!("        .globl main\nmain:   jret\n{text}")),
    };
    let options = LinkOptions {
        layout,
        ..LinkOptions::default()
    };
    link_program(vec![input], &mut [], &options)
}

fn symbol(program: &Program, name: &str) -> u32 {
    let found = program.symbols.iter().find(|symbol| symbol.name == name);
    found.unwrap_or_else(|| panic!("no symbol {name}")).address
}

fn word(program: &Program, address: u32) -> u32 {
    let found = program.image().segments.iter().find_map(|segment| {
        let at = address.checked_sub(segment.address)? as usize;
        Some(u32::from_le_bytes(*segment.bytes.get(at..)?.first_chunk()?))
    });
    found.unwrap_or_else(|| panic!("nothing at {address:#x}"))
}

#[test]
fn the_scratchpad_can_be_full() {
    for (size, fits) in [(SCRATCHPAD_SIZE, true), (SCRATCHPAD_SIZE + 4, false)] {
        let text = format!("        .section {SCRATCHPAD_SECTION}, \"aw\"\n        .space {size}\n");
        assert_eq!(linked(&text, MemoryLayout::DEFAULT).is_ok(), fits, "{size}");
    }
}

#[test]
fn data_may_end_where_stacks_begin() {
    let layout = MemoryLayout::DEFAULT;
    for (data, fits) in [
        (layout.stacks - 128, true),
        (layout.stacks - 64, false),
        (layout.stacks, false),
        (layout.stacks + layout.stack_size, false),
    ] {
        let text = "        .data\n        .globl value\nvalue:  .space 128\n";
        let program = linked(text, MemoryLayout { data, ..layout });
        assert_eq!(program.is_ok(), fits, "data at {data:#x}");
    }
}

/// Parts of a copied section stay aligned because the section has their largest alignment.
#[test]
fn what_is_copied_stays_aligned() {
    let text = format!(
        "        .section {SCRATCHPAD_SECTION}, \"aw\"\n        .globl first\nfirst:  .long 1\n\
                        .balign 256\n        .globl second\nsecond: .long 2\n\
                        .data\n        .globl places\nplaces: .long second, __scratchpad_data_start\n"
    );
    let program = linked(&text, MemoryLayout::DEFAULT).unwrap_or_else(|errors| panic!("{errors:?}"));
    let places = symbol(&program, "places");
    let (second, start) = (word(&program, places), word(&program, places + 4));
    assert_eq!((second % 256, start % 256), (0, 0), "{second:#x} {start:#x}");
    assert_eq!(word(&program, start + second), 2);
}

#[test]
fn blocks_of_thread_local_storage_are_whole_lines() {
    for size in [4, CACHE_LINE, CACHE_LINE + 4] {
        let text = format!(
            "        .section .tdata, \"aw\"\n        .space {size}, 1\n        .data\n        .globl place\nplace:  .long __npu_tls_size\n"
        );
        let program = linked(&text, MemoryLayout::DEFAULT).unwrap_or_else(|errors| panic!("{errors:?}"));
        let found = word(&program, symbol(&program, "place"));
        assert_eq!(found, size.next_multiple_of(CACHE_LINE), "{size}");
    }
}

/// The address of a dropped function is replaced by a value other than zero where zero would end a
/// list of ranges.
#[test]
fn addresses_of_functions_that_are_left_out() {
    let sections = [(".debug_ranges", 1), (".debug_loc", 1), (".debug_addr", u32::MAX)];
    let tables: String = sections
        .iter()
        .map(|(name, _)| format!("        .section {name}, \"\"\n        .long unused\n        .long main\n"))
        .collect();
    let text = format!("        .section .text.unused, \"ax\"\nunused: jret\n{tables}");
    let input = Input {
        name: "a".to_owned(),
        object: assembled(&format!("        .globl main\nmain:   jret\n{text}")),
    };
    let options = LinkOptions {
        gc_sections: true,
        ..LinkOptions::default()
    };
    let program = link_program(vec![input], &mut [], &options).unwrap();
    for (name, expected) in sections {
        let section = program.sections.iter().find(|section| section.name == name);
        let bytes = &section.unwrap_or_else(|| panic!("no {name}")).bytes;
        let words: Vec<u32> = bytes
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words, [expected, symbol(&program, "main")], "{name}");
    }
}

/// Stacks in the memory of each tile overlap with nothing in the memory of any tile in use, and
/// need a layout in the memory of tile 0.
#[test]
fn each_tile_has_the_stacks_of_its_core() {
    let linked = |layout: MemoryLayout, threads: u32, stacks_in_tiles: bool| {
        let input = Input {
            name: "a".to_owned(),
            object: assembled("        .globl main\nmain:   jret\n        .data\nvalue:  .space 128\n"),
        };
        let options = LinkOptions {
            layout,
            threads,
            stacks_in_tiles,
            ..LinkOptions::default()
        };
        link_program(vec![input], &mut [], &options)
    };
    let layout = MemoryLayout::DEFAULT;
    let program = linked(layout, 64, true).unwrap();
    assert_eq!(symbol(&program, "__npu_tile_bytes"), 1 << 28);
    assert_eq!(symbol(&program, "__npu_stacks"), layout.stacks);
    let adjacent = linked(layout, 64, false).unwrap();
    assert!(adjacent.symbols.iter().all(|symbol| symbol.name != "__npu_tile_bytes"));
    // Data in the memory of tile 3, where the stacks of its core are.
    let data = 0x3000_0000 + layout.stacks;
    let there = MemoryLayout { data, ..layout };
    assert!(linked(there, 24, true).is_ok() && linked(there, 32, false).is_ok());
    let errors = linked(there, 32, true).unwrap_err();
    assert!(
        errors[0].to_string().contains("overlaps the stacks, 0x30080000"),
        "{errors:?}"
    );
    let errors = linked(MemoryLayout::ALVEO, 8, true).unwrap_err();
    assert!(
        errors[0].to_string().contains("not in the memory of tile 0"),
        "{errors:?}"
    );
}
