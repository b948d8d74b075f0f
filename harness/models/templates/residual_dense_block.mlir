#channel = affine_map<(d0, d1, d2, d3) -> (d1)>
#same = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
{% set parallel = 'iterator_types = ["parallel", "parallel", "parallel", "parallel"]' %}
{% set ones = "dense<1> : vector<2xi64>" %}
{% macro image(channels) %}{{ tensor([1, channels, height, width]) }}{% endmacro %}

{% macro convolution(y, x, inputs, outputs, name, active) %}
{% set padded, kernel = tensor([1, inputs, height + 2, width + 2]), tensor([outputs, inputs, 3, 3]) %}
{% set bias, weight = next(weights) %}
{% set out = image(outputs) %}
    {{ y }}_padded = tensor.pad {{ x }} low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%n: index, %c: index, %h: index, %w: index):
      tensor.yield %zero : f32
    } : {{ image(inputs) }} to {{ padded }}
    {{ y }}_bias = {{ constant(name ~ "_bias", bias) }}
    {{ y }}_weight = {{ constant(name ~ "_weight", weight) }}
    {{ y }}_empty = tensor.empty() : {{ out }}
    {{ y }}_start = linalg.generic {indexing_maps = [#channel, #same], {{ parallel }}}
        ins({{ y }}_bias : {{ tensor([outputs]) }}) outs({{ y }}_empty : {{ out }}) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> {{ out }}
    {{ y }}{{ "_sums" if active }} = linalg.conv_2d_nchw_fchw {dilations = {{ ones }}, strides = {{ ones }}}
        ins({{ y }}_padded, {{ y }}_weight : {{ padded }}, {{ kernel }}) outs({{ y }}_start : {{ out }}) -> {{ out }}
{% if active %}
    {{ y }} = linalg.generic {indexing_maps = [#same, #same], {{ parallel }}}
        ins({{ y }}_sums : {{ out }}) outs({{ y }}_empty : {{ out }}) {
    ^bb0(%in: f32, %out: f32):
      %positive = arith.cmpf ugt, %in, %zero : f32
      %above = arith.select %positive, %in, %zero : f32
      %below = arith.select %positive, %zero, %in : f32
      %scaled = arith.mulf %below, %slope : f32
      %sum = arith.addf %above, %scaled : f32
      linalg.yield %sum : f32
    } -> {{ out }}
{% endif %}
{% endmacro %}

{% macro scale_and_add(y, update, x) %}
    {{ y }}_space = tensor.empty() : {{ image(channels) }}
    {{ y }} = linalg.generic {indexing_maps = [#same, #same, #same], {{ parallel }}}
        ins({{ update }}, {{ x }} : {{ image(channels) }}, {{ image(channels) }}) outs({{ y }}_space : {{ image(channels) }}) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %scaled = arith.mulf %in, %slope : f32
      %sum = arith.addf %scaled, %in_0 : f32
      linalg.yield %sum : f32
    } -> {{ image(channels) }}
{% endmacro %}

{# Every part is inserted into a fresh tensor. #}
{% macro block(name, x) %}
{% for number in range(1, 6) %}
{% set inputs = channels + (number - 1) * growth %}
{% set whole = "%" ~ name ~ "_whole" ~ number %}
{% if number > 1 %}
    {{ whole }}_0 = tensor.empty() : {{ image(inputs) }}
{% for part in range(number) %}
{% set value, size, offset = ("%" ~ name ~ "_x" ~ part, growth, channels + (part - 1) * growth) if part else (x, channels, 0) %}
    {{ whole }}_{{ part + 1 }} = tensor.insert_slice {{ value }} into {{ whole }}_{{ part }}[0, {{ offset }}, 0, 0] [1, {{ size }}, {{ height }}, {{ width }}] [1, 1, 1, 1] : {{ image(size) }} into {{ image(inputs) }}
{% endfor %}
{% endif %}
{{ convolution("%" ~ name ~ "_x" ~ number, whole ~ "_" ~ number if number > 1 else x, inputs, channels if number == 5 else growth, name ~ "_conv" ~ number, number < 5) -}}
{% endfor %}
{{ scale_and_add("%" ~ name, "%" ~ name ~ "_x5", x) -}}
{% endmacro %}

module {
  func.func @main(%arg0: {{ image(channels) }}) -> {{ image(channels) }} {
    %zero = arith.constant 0.0 : f32
    %slope = arith.constant {{ slope }} : f32
{% for number in range(blocks) %}
{% set name = "block" ~ number %}
{% set x = "%block" ~ (number - 1) if number else "%arg0" %}
{% if is_trunk %}
{{ block(name ~ "_dense0", x) -}}
{{ block(name ~ "_dense1", "%" ~ name ~ "_dense0") -}}
{{ block(name ~ "_dense2", "%" ~ name ~ "_dense1") -}}
{{ scale_and_add("%" ~ name, "%" ~ name ~ "_dense2", x) -}}
{% else %}
{{ block(name, x) -}}
{% endif %}
{% endfor %}
    return %block{{ blocks - 1 }} : {{ image(channels) }}
  }
}
