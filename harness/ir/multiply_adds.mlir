{#- Independent sums of fused multiply-adds, which take turns, so that neighbours do not wait for each other. -#}
{%- set tensor = "tensor<" ~ elements ~ "xf32>" -%}
func.func @main(%argument: {{ tensor }}) -> {{ tensor }} {
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %empty = tensor.empty() : {{ tensor }}
  %result = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%argument : {{ tensor }}) outs(%empty : {{ tensor }}) {
  ^bb0(%x: f32, %unused: f32):
{%- for n in range(sums) %}
    %k{{ n }} = arith.constant {{ n + 1 }}.0 : f32
    %y{{ n }}_0 = arith.mulf %x, %k{{ n }} : f32
{%- endfor %}
{%- for step in range(1, steps + 1) %}
{%- for n in range(sums) %}
    %y{{ n }}_{{ step }} = math.fma %y{{ n }}_{{ step - 1 }}, %half, %one : f32
{%- endfor %}
{%- endfor %}
    %t1 = arith.addf %y0_{{ steps }}, %y1_{{ steps }} : f32
{%- for n in range(2, sums) %}
    %t{{ n }} = arith.addf %t{{ n - 1 }}, %y{{ n }}_{{ steps }} : f32
{%- endfor %}
    linalg.yield %t{{ sums - 1 }} : f32
  } -> {{ tensor }}
  return %result : {{ tensor }}
}
