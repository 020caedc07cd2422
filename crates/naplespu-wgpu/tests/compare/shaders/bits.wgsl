// Functions of bits.
//
// dispatch 2 1 1
// buffer 0 storage u32 128
// buffer 1 storage zero 2048

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<array<u32, 16>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    // Numbers with few and with many leading zeros, and zero.
    let word = select(words[id.x] >> (words[id.x] & 31u), 0u, id.x == 5u);
    let signed = bitcast<i32>(words[id.x]) >> (words[id.x] & 31u);
    let offset = (word >> 3u) & 31u;
    let count = (word >> 9u) & 31u;
    let r = &out[id.x];
    (*r)[0] = countLeadingZeros(word);
    (*r)[1] = countTrailingZeros(word);
    (*r)[2] = countOneBits(word);
    (*r)[3] = reverseBits(word);
    (*r)[4] = firstLeadingBit(word);
    (*r)[5] = bitcast<u32>(firstLeadingBit(signed));
    (*r)[6] = firstTrailingBit(word);
    (*r)[7] = extractBits(word, offset, count);
    (*r)[8] = bitcast<u32>(extractBits(signed, offset, count));
    (*r)[9] = insertBits(word, 0x5a5au, offset, count);
    (*r)[10] = dot4U8Packed(word, words[id.x]);
    (*r)[11] = bitcast<u32>(dot4I8Packed(word, words[id.x]));
    (*r)[12] = pack4xU8(unpack4xU8(word) + vec4u(1, 2, 3, 250));
    (*r)[13] = bitcast<u32>(dot(vec3i(signed), vec3i(1, -2, 3)));
    (*r)[14] = bitcast<u32>(countOneBits(signed));
    (*r)[15] = word ^ (word << 13u) ^ (word >> 7u);
}
