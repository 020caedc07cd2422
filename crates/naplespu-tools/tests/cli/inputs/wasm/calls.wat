(module
  (memory 1)
  (func $read (param i32) (result i32) local.get 0 i32.load offset=4)
  (func $twice (param i32) (result i32) (i32.mul (call $read (local.get 0)) (i32.const 2)))
  (func (export "outer") (param i32) (result i32) (i32.add (call $twice (local.get 0)) (i32.const 1)))
  (func $deep (export "deep") (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1))))
