#left = affine_map<(d0, d1, d2) -> (d0, d2)>
#right = affine_map<(d0, d1, d2) -> (d2, d1)>
#product = affine_map<(d0, d1, d2) -> (d0, d1)>
#bias = affine_map<(d0, d1) -> (d1)>
#same = affine_map<(d0, d1) -> (d0, d1)>
{% set x, w, b = tensor([batch, width], dtype), tensor([width, width], dtype), tensor([width], dtype) %}
{% set parallel = 'iterator_types = ["parallel", "parallel"]' %}
module {
  func.func @main(%arg0: {{ x }}) -> {{ x }} {
    %zero = arith.constant 0.0 : {{ dtype }}
    %empty = tensor.empty() : {{ x }}
    %zeros = linalg.fill ins(%zero : {{ dtype }}) outs(%empty : {{ x }}) -> {{ x }}
{% for weight, bias in layers %}
{% set n = loop.index0 %}
{% set input = "%arg0" if loop.first else "%y" ~ (n - 1) %}
    %bias{{ n }} = {{ constant("layer" ~ n ~ "_bias", bias, dtype) }}
    %weight{{ n }} = {{ constant("layer" ~ n ~ "_weight", weight, dtype) }}
{% if form == "pytorch" %}
    %space{{ n }} = tensor.empty() : {{ w }}
    %turned{{ n }} = linalg.transpose ins(%weight{{ n }} : {{ w }}) outs(%space{{ n }} : {{ w }}) permutation = [1, 0]
    %product{{ n }} = linalg.matmul ins({{ input }}, %turned{{ n }} : {{ x }}, {{ w }}) outs(%zeros : {{ x }}) -> {{ x }}
    %biased{{ n }} = linalg.generic {indexing_maps = [#bias, #same, #same], {{ parallel }}}
        ins(%bias{{ n }}, %product{{ n }} : {{ b }}, {{ x }}) outs(%empty : {{ x }}) {
    ^bb0(%in: {{ dtype }}, %in_0: {{ dtype }}, %out: {{ dtype }}):
      %sum = arith.addf %in, %in_0 : {{ dtype }}
      linalg.yield %sum : {{ dtype }}
    } -> {{ x }}
    %y{{ n }} = linalg.generic {indexing_maps = [#same, #same], {{ parallel }}}
        ins(%biased{{ n }} : {{ x }}) outs(%empty : {{ x }}) {
    ^bb0(%in: {{ dtype }}, %out: {{ dtype }}):
      %positive = arith.cmpf ugt, %in, %zero : {{ dtype }}
      %above = arith.select %positive, %in, %zero : {{ dtype }}
      linalg.yield %above : {{ dtype }}
    } -> {{ x }}
{% else %}
    %product{{ n }} = linalg.generic {indexing_maps = [#left, #right, #product],
        iterator_types = ["parallel", "parallel", "reduction"]}
        ins({{ input }}, %weight{{ n }} : {{ x }}, {{ w }}) outs(%zeros : {{ x }}) {
    ^bb0(%in: {{ dtype }}, %in_0: {{ dtype }}, %out: {{ dtype }}):
      %multiplied = arith.mulf %in, %in_0 : {{ dtype }}
      %sum = arith.addf %out, %multiplied : {{ dtype }}
      linalg.yield %sum : {{ dtype }}
    } -> {{ x }}
    %biased{{ n }} = linalg.generic {indexing_maps = [#bias, #same], {{ parallel }}}
        ins(%bias{{ n }} : {{ b }}) outs(%product{{ n }} : {{ x }}) {
    ^bb0(%in: {{ dtype }}, %out: {{ dtype }}):
      %sum = arith.addf %in, %out : {{ dtype }}
      linalg.yield %sum : {{ dtype }}
    } -> {{ x }}
    %y{{ n }} = linalg.generic {indexing_maps = [#same], {{ parallel }}} outs(%biased{{ n }} : {{ x }}) {
    ^bb0(%out: {{ dtype }}):
      %above = arith.maximumf %out, %zero : {{ dtype }}
      linalg.yield %above : {{ dtype }}
    } -> {{ x }}
{% endif %}
{% endfor %}
    return %y{{ layers | length - 1 }} : {{ x }}
  }
}
