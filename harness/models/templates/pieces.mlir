{# Pieces of programs on tensors whose axes are letters: `sizes` says how long each is, and "?" is the value %letter. #}
{% macro type(axes, element) %}tensor<{% for axis in axes %}{{ sizes[axis] }}x{% endfor %}{{ element }}>{% endmacro %}

{% macro list(axes) %}({{ axes | join(", ") }}){% endmacro %}

{% macro open(value, axes, element) %}
{% for axis in axes if sizes[axis] == "?" %}
    %axis_{{ axis }} = arith.constant {{ axes.index(axis) }} : index
    %{{ axis }} = tensor.dim {{ value }}, %axis_{{ axis }} : {{ type(axes, element) }}
{% endfor %}
{% endmacro %}

{% macro filled(result, axes, element, start="") %}
    {{ result }}{{ "_empty" if start }} = tensor.empty({% for axis in axes if sizes[axis] == "?" %}{{ ", " if not loop.first }}%{{ axis }}{% endfor %}) : {{ type(axes, element) }}
{% if start %}
    {{ result }} = linalg.fill ins({{ start }} : {{ element }}) outs({{ result }}_empty : {{ type(axes, element) }}) -> {{ type(axes, element) }}
{% endif %}
{% endmacro %}

{# The body, given by the call, reads %in0, %in1 and so on, and %out; `ins` are triples of a value, its axes and its element type. #}
{% macro generic(result, ins, over, axes, element, start="") %}
{% print filled(result ~ "_to", axes, element, start) %}
{% set maps, values, types, arguments, kinds = [], [], [], [], [] %}
{% for value, own, kind in ins %}
{% set _ = (maps.append(list(own)), values.append(value), types.append(type(own, kind)), arguments.append("%in" ~ loop.index0 ~ ": " ~ kind)) %}
{% endfor %}
{% for axis in over %}{% set _ = kinds.append('"parallel"' if axis in axes else '"reduction"') %}{% endfor %}
    {{ result }} = linalg.generic {
      indexing_maps = [{% for map in maps + [list(axes)] %}{{ ", " if not loop.first }}affine_map<{{ list(over) }} -> {{ map }}>{% endfor %}],
      iterator_types = [{{ kinds | join(", ") }}]
    } {{ "ins(" ~ values | join(", ") ~ " : " ~ types | join(", ") ~ ") " if ins }}outs({{ result }}_to : {{ type(axes, element) }}) {
    ^bb0({{ (arguments + ["%out: " ~ element]) | join(", ") }}):
{% print caller() %}
    } -> {{ type(axes, element) }}
{% endmacro %}

{# A value in f32 before a computation, and one after it that is not rounded yet; both are the value itself where that is f32. #}
{% macro wide(value) %}{{ value }}{{ "_wide" if dtype != "f32" }}{% endmacro %}
{% macro exact(value) %}{{ value }}{{ "_exact" if dtype != "f32" }}{% endmacro %}

{% macro widened(value, axes) %}
{% if dtype != "f32" %}
{% call generic(wide(value), [(value, axes, dtype)], axes, axes, "f32") %}
      %r = arith.extf %in0 : {{ dtype }} to f32
      linalg.yield %r : f32
{% endcall %}
{% endif %}
{% endmacro %}

{% macro narrowed(value, axes) %}
{% if dtype != "f32" %}
{% call generic(value, [(exact(value), axes, "f32")], axes, axes, dtype) %}
      %r = arith.truncf %in0 : f32 to {{ dtype }}
      linalg.yield %r : {{ dtype }}
{% endcall %}
{% endif %}
{% endmacro %}

{# The last axis of the left operand is summed over; products are summed in f32. #}
{% macro matmul(result, left, left_axes, right, right_axes) %}
{% set axes = left_axes[:-1] ~ right_axes[-1] %}
{% print filled(result ~ "_start", axes, "f32", "%zero") %}
    {{ exact(result) }} = linalg.{{ "batch_" if axes | length == 3 }}matmul ins({{ left }}, {{ right }} : {{ type(left_axes, dtype) }}, {{ type(right_axes, dtype) }}) outs({{ result }}_start : {{ type(axes, "f32") }}) -> {{ type(axes, "f32") }}
{% print narrowed(result, axes) %}
{% endmacro %}

{% macro transpose(result, value, axes, turned) %}
{% print filled(result ~ "_to", turned, dtype) %}
    {{ result }} = linalg.transpose ins({{ value }} : {{ type(axes, dtype) }}) outs({{ result }}_to : {{ type(turned, dtype) }}) permutation = [{% for axis in turned %}{{ ", " if not loop.first }}{{ axes.index(axis) }}{% endfor %}]
{% endmacro %}

{# Over the last axis, in f32; weight and bias are f32 too. #}
{% macro norm(result, value, axes, weight, bias, kind) %}
{% set rows, last = axes[:-1], axes[-1] %}
{% set x = wide(value) %}
    {{ result }}_count = arith.constant {{ sizes[last] }}.0 : f32
    {{ result }}_epsilon = arith.constant 1.0e-5 : f32
{% print widened(value, axes) %}
{% if kind == "layer" %}
{% call generic(result ~ "_sum", [(x, axes, "f32")], axes, rows, "f32", "%zero") %}
      %r = arith.addf %out, %in0 : f32
      linalg.yield %r : f32
{% endcall %}
{% call generic(result ~ "_centred", [(x, axes, "f32"), (result ~ "_sum", rows, "f32")], axes, axes, "f32") %}
      %mean = arith.divf %in1, {{ result }}_count : f32
      %r = arith.subf %in0, %mean : f32
      linalg.yield %r : f32
{% endcall %}
{% set x = result ~ "_centred" %}
{% endif %}
{% call generic(result ~ "_squares", [(x, axes, "f32")], axes, rows, "f32", "%zero") %}
      %square = arith.mulf %in0, %in0 : f32
      %r = arith.addf %out, %square : f32
      linalg.yield %r : f32
{% endcall %}
{% set operands = [(x, axes, "f32"), (result ~ "_squares", rows, "f32"), (weight, last, "f32")] %}
{% call generic(exact(result), operands + ([(bias, last, "f32")] if kind == "layer" else []), axes, axes, "f32") %}
      %mean = arith.divf %in1, {{ result }}_count : f32
      %above = arith.addf %mean, {{ result }}_epsilon : f32
      %inverse = math.rsqrt %above : f32
      %scaled = arith.mulf %in0, %inverse : f32
      %r{{ "0" if kind == "layer" }} = arith.mulf %scaled, %in2 : f32
{% if kind == "layer" %}
      %r = arith.addf %r0, %in3 : f32
{% endif %}
      linalg.yield %r : f32
{% endcall %}
{% print narrowed(result, axes) %}
{% endmacro %}

{# Over the last axis, in f32. #}
{% macro softmax(result, value, axes) %}
{% print widened(value, axes) %}
{% print filled(exact(result) ~ "_to", axes, "f32") %}
    {{ exact(result) }} = linalg.softmax dimension({{ axes | length - 1 }}) ins({{ wide(value) }} : {{ type(axes, "f32") }}) outs({{ exact(result) }}_to : {{ type(axes, "f32") }}) -> {{ type(axes, "f32") }}
{% print narrowed(result, axes) %}
{% endmacro %}

{# The exact form, by the error function, in f32. #}
{% macro gelu(result, value, axes) %}
    {{ result }}_half = arith.constant 0.5 : f32
    {{ result }}_one = arith.constant 1.0 : f32
    {{ result }}_root = arith.constant 0.70710678118654752 : f32
{% print widened(value, axes) %}
{% call generic(exact(result), [(wide(value), axes, "f32")], axes, axes, "f32") %}
      %scaled = arith.mulf %in0, {{ result }}_root : f32
      %erf = math.erf %scaled : f32
      %above = arith.addf %erf, {{ result }}_one : f32
      %half = arith.mulf %in0, {{ result }}_half : f32
      %r = arith.mulf %half, %above : f32
      linalg.yield %r : f32
{% endcall %}
{% print narrowed(result, axes) %}
{% endmacro %}

{% macro sum(result, left, right, axes) %}
{% call generic(result, [(left, axes, dtype), (right, axes, dtype)], axes, axes, dtype) %}
      %r = arith.addf %in0, %in1 : {{ dtype }}
      linalg.yield %r : {{ dtype }}
{% endcall %}
{% endmacro %}

{# Queries hqe on keys and values hke; under a causal mask a query sees the keys up to its own place, the last ones' being equal. #}
{% macro attention(result, query, key, value, form, causal) %}
    {{ result }}_scale = arith.constant {{ sizes["e"] ** -0.5 }} : f32
{% if causal %}
{% if "?" in (sizes["q"], sizes["k"]) %}
{% for axis in "qk" if sizes[axis] != "?" %}
    %{{ axis }} = arith.constant {{ sizes[axis] }} : index
{% endfor %}
    {{ result }}_earlier = arith.subi %k, %q : index
{% else %}
    {{ result }}_earlier = arith.constant {{ sizes["k"] - sizes["q"] }} : index
{% endif %}
    {{ result }}_seen = arith.constant 0.0 : {{ dtype }}
    {{ result }}_hidden = arith.constant {{ {"f32": "0xFF800000", "f16": "0xFC00", "bf16": "0xFF80"}[dtype] }} : {{ dtype }}
{% call generic(result ~ "_mask", [], "hqk", "hqk", dtype) %}
      %row = linalg.index 1 : index
      %at = linalg.index 2 : index
      %last = arith.addi %row, {{ result }}_earlier : index
      %sees = arith.cmpi sle, %at, %last : index
      %r = arith.select %sees, {{ result }}_seen, {{ result }}_hidden : {{ dtype }}
      linalg.yield %r : {{ dtype }}
{% endcall %}
{% endif %}
{% if form == "fused" %}
{% print filled(result ~ "_to", "hqe", dtype) %}
{# In the generic form, since releases before 3.13 spell it otherwise. #}
    {{ result }} = "iree_linalg_ext.attention"({{ query }}, {{ key }}, {{ value }}, {{ result }}_scale{{ ", " ~ result ~ "_mask" if causal }}, {{ result }}_to) <{
      indexing_maps = [{% for axes in ["hqd", "hkd", "hke", ""] + (["hqk"] if causal else []) + ["hqe"] %}{{ ", " if not loop.first }}affine_map<(h, q, e, d, k) -> {{ list(axes) }}>{% endfor %}],
      operandSegmentSizes = array<i32: 1, 1, 1, 1, {{ 1 if causal else 0 }}, 1>
    }> ({
    ^bb0(%score: f32):
      "iree_linalg_ext.yield"(%score) : (f32) -> ()
    }) : ({{ type("hqe", dtype) }}, {{ type("hke", dtype) }}, {{ type("hke", dtype) }}, f32{{ ", " ~ type("hqk", dtype) if causal }}, {{ type("hqe", dtype) }}) -> {{ type("hqe", dtype) }}
{% else %}
{% print transpose(result ~ "_turned", key, "hke", "hek") %}
{% print matmul(result ~ "_products", query, "hqe", result ~ "_turned", "hek") %}
{% print widened(result ~ "_products", "hqk") %}
{% call generic(exact(result ~ "_scores"), [(wide(result ~ "_products"), "hqk", "f32")] + ([(result ~ "_mask", "hqk", dtype)] if causal else []), "hqk", "hqk", "f32") %}
      %{{ "scaled" if causal else "r" }} = arith.mulf %in0, {{ result }}_scale : f32
{% if causal %}
{% if dtype != "f32" %}
      %mask = arith.extf %in1 : {{ dtype }} to f32
{% endif %}
      %r = arith.addf %scaled, {{ "%in1" if dtype == "f32" else "%mask" }} : f32
{% endif %}
      linalg.yield %r : f32
{% endcall %}
{% print narrowed(result ~ "_scores", "hqk") %}
{% print softmax(result ~ "_weights", result ~ "_scores", "hqk") %}
{% print matmul(result, result ~ "_weights", "hqk", value, "hke") %}
{% endif %}
{% endmacro %}
