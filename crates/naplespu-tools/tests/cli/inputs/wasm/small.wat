(module
  (memory (export "memory") 1)
  (table funcref (elem $sum))
  (type $two (func (param i32 i32) (result i32)))
  (func $sum (export "sum") (type $two) local.get 0 local.get 1 i32.add)
  (func (export "divmod") (param i64 i64) (result i64 i64)
    local.get 0 local.get 1 i64.div_u
    local.get 0 local.get 1 i64.rem_u)
  (func (export "half") (param f64) (result f64) local.get 0 f64.const 0.5 f64.mul)
  (func $read (export "read") (param i32) (result i32) local.get 0 i32.load offset=4)
  (func (export "through") (param i32) (result i32)
    i32.const 40 i32.const 2 local.get 0 call_indirect (type $two)))
