(module
  (func (export "spin") (param i32) (result i32)
    (loop $again
      (local.set 0 (i32.add (local.get 0) (i32.const 1)))
      (br $again))
    (local.get 0)))
