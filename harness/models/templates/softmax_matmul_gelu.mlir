{% from "pieces.mlir" import gelu, matmul, open, softmax, type with context %}
module {
  func.func @main(%x: {{ type("mk", dtype) }}, %right: {{ type("kn", dtype) }}) -> {{ type("mn", dtype) }} {
    %zero = arith.constant 0.0 : f32
{% print open("%x", "mk", dtype) %}
{% print softmax("%weights", "%x", "mk") %}
{% print matmul("%product", "%weights", "mk", "%right", "kn") %}
{% print gelu("%result", "%product", "mn") %}
    return %result : {{ type("mn", dtype) }}
  }
}
