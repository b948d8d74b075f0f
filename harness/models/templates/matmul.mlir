{% set left, right, result = tensor([m, k], dtype), tensor([k, n], dtype), tensor([m, n], sums) %}
module {
  func.func @main(%left: {{ left }}{{ ", %right: " ~ right if constant_right is none }}) -> {{ result }} {
    %zero = arith.constant {{ "0" if sums == "i32" else "0.0" }} : {{ sums }}
{% if constant_right is not none %}
    %right = {{ constant("right", constant_right, dtype) }}
{% endif %}
{% if m == "?" %}
    %axis_m = arith.constant 0 : index
    %m = tensor.dim %left, %axis_m : {{ left }}
{% endif %}
{% if n == "?" %}
    %axis_n = arith.constant 1 : index
    %n = tensor.dim %right, %axis_n : {{ right }}
{% endif %}
    %empty = tensor.empty({{ "%m" if m == "?" }}{{ ", " if m == n == "?" }}{{ "%n" if n == "?" }}) : {{ result }}
    %init = linalg.fill ins(%zero : {{ sums }}) outs(%empty : {{ result }}) -> {{ result }}
    %product = linalg.matmul ins(%left, %right : {{ left }}, {{ right }}) outs(%init : {{ result }}) -> {{ result }}
    return %product : {{ result }}
  }
}
