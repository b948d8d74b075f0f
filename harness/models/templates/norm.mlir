{% from "pieces.mlir" import norm, open, type with context %}
{% set x, per_column = type("sd", dtype), type("d", "f32") %}
module {
  func.func @main(%x: {{ x }}, %weight: {{ per_column }}{{ ", %bias: " ~ per_column if kind == "layer" }}) -> {{ x }} {
    %zero = arith.constant 0.0 : f32
{% print open("%x", "sd", dtype) %}
{% print norm("%result", "%x", "sd", "%weight", "%bias", kind) %}
    return %result : {{ x }}
  }
}
