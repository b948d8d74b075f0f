{% set all, x, w = tensor([batches * rows, width]), tensor([rows, width]), tensor([width, width]) %}
module {
  func.func @main(%arg0: {{ all }}) -> {{ all }} {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : {{ x }}
    %zeros = linalg.fill ins(%zero : f32) outs(%empty : {{ x }}) -> {{ x }}
{% for matrix in matrices %}
    %weight{{ loop.index0 }} = {{ constant("layer" ~ loop.index0 ~ "_weight", matrix) }}
{% endfor %}
{% for part in range(batches) %}
{% if batches > 1 %}
    %part{{ part }} = tensor.extract_slice %arg0[{{ part * rows }}, 0] [{{ rows }}, {{ width }}] [1, 1] : {{ all }} to {{ x }}
{% endif %}
{% for step in route %}
{% set y = "%part" ~ part ~ "_" ~ loop.index0 %}
{% set input = "%part" ~ part ~ "_" ~ (loop.index0 - 1) if loop.index0 else "%part" ~ part if batches > 1 else "%arg0" %}
{% if step is string %}
    {{ y }} = flow.tensor.transfer {{ input }} : {{ x }} to #hal.device.promise<@{{ step }}>
{% else %}
    {{ y }}_product = linalg.matmul ins({{ input }}, %weight{{ step }} : {{ x }}, {{ w }}) outs(%zeros : {{ x }}) -> {{ x }}
    {{ y }} = arith.maximumf {{ y }}_product, %zeros : {{ x }}
{% endif %}
{% endfor %}
{% endfor %}
{% set last = "_" ~ (route | length - 1) %}
{% if batches > 1 %}
    %result = tensor.concat dim(0) {% for part in range(batches) %}{{ ", " if part }}%part{{ part }}{{ last }}{% endfor %} : ({{ ", ".join([x] * batches) }}) -> {{ all }}
{% endif %}
    return {{ "%result" if batches > 1 else "%part0" ~ last }} : {{ all }}
  }
}
