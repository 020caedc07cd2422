(module
  (func (export "sums") (param v128 v128) (result v128)
    local.get 0 local.get 1 i16x8.add)
  (func (export "half") (param v128) (result v128)
    local.get 0 (f32x4.splat (f32.const 0.5)) f32x4.mul)
  (func (export "lane") (param v128) (result i64)
    local.get 0 i64x2.extract_lane 1))
