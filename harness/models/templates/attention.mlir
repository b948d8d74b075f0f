{% from "pieces.mlir" import attention, open, type with context %}
module {
  func.func @main(%query: {{ type("hqe", dtype) }}, %key: {{ type("hke", dtype) }}, %value: {{ type("hke", dtype) }}) -> {{ type("hqe", dtype) }} {
    %zero = arith.constant 0.0 : f32
{% print open("%query", "hqe", dtype) %}
{% print open("%key", "hke", dtype) %}
{% print attention("%result", "%query", "%key", "%value", form, causal) %}
    return %result : {{ type("hqe", dtype) }}
  }
}
