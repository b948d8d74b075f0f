{% from "pieces.mlir" import attention, gelu, matmul, norm, open, sum, transpose, type with context %}
{% set x = type("qd", dtype) %}
{% macro weight(name) %}
    %{{ name }} = {{ constant(name, weights[name], dtype if weights[name].ndim == 2 else "f32") }}
{% endmacro %}

{% macro heads(result, value, weight) %}
{% print matmul(result ~ "_flat", value, "qd", weight, "dc") %}
    {{ result }}_split = tensor.expand_shape {{ result }}_flat [[0], [1, 2]] output_shape [{{ "%q" if sizes["q"] == "?" else sizes["q"] }}, {{ sizes["h"] }}, {{ sizes["e"] }}] : {{ type("qc", dtype) }} into {{ type("qhe", dtype) }}
{% print transpose(result, result ~ "_split", "qhe", "hqe") %}
{% endmacro %}

module {
  func.func @main(%x: {{ x }}) -> {{ x }} {
    %zero = arith.constant 0.0 : f32
{% print open("%x", "qd", dtype) %}
{% print open("%x", "kd", dtype) %}
{% for name in weights %}
{% print weight(name) %}
{% endfor %}
{% print norm("%before", "%x", "qd", "%norm0", "%shift0", kind) %}
{% print heads("%query", "%before", "%weight_query") %}
{% print heads("%key", "%before", "%weight_key") %}
{% print heads("%value", "%before", "%weight_value") %}
{% print attention("%attended", "%query", "%key", "%value", form, true) %}
{% print transpose("%joined", "%attended", "hqe", "qhe") %}
    %context = tensor.collapse_shape %joined [[0], [1, 2]] : {{ type("qhe", dtype) }} into {{ type("qc", dtype) }}
{% print matmul("%projected", "%context", "qc", "%weight_out", "cd") %}
{% print sum("%y", "%x", "%projected", "qd") %}
{% print norm("%between", "%y", "qd", "%norm1", "%shift1", kind) %}
{% print matmul("%up", "%between", "qd", "%weight_up", "df") %}
{% print gelu("%active", "%up", "qf") %}
{% print matmul("%down", "%active", "qf", "%weight_down", "fd") %}
{% print sum("%result", "%y", "%down", "qd") %}
    return %result : {{ x }}
  }
}
