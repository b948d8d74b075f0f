#same = affine_map<(n, y, x, c) -> (n, y, x, c)>
{% set image, output = tensor(image), tensor(output) %}
module {
  func.func @main(%input: {{ image }}) -> {{ output }} {
    %zero = arith.constant 0.0 : f32
    %filter = {{ constant("filter", filter) }}
    %bias = {{ constant("bias", bias) }}
    %empty = tensor.empty() : {{ output }}
    %biased = linalg.broadcast ins(%bias : {{ tensor(bias.shape) }}) outs(%empty : {{ output }}) dimensions = [0, 1, 2]
{% if form == "named" %}
    %convolved = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
        ins(%input, %filter : {{ image }}, {{ tensor(filter.shape) }}) outs(%biased : {{ output }}) -> {{ output }}
{% else %}
{# The tutorial's own text: the filter comes first, with its input channels outermost. #}
    %convolved = linalg.generic {
      indexing_maps = [
        affine_map<(n, y, x, c, rz, ry, rx) -> (rx, rz, ry, c)>,
        affine_map<(n, y, x, c, rz, ry, rx) -> (n, y + rz, x + ry, rx)>,
        affine_map<(n, y, x, c, rz, ry, rx) -> (n, y, x, c)>
      ],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
    } ins(%filter, %input : {{ tensor(filter.shape) }}, {{ image }}) outs(%biased : {{ output }}) {
    ^bb0(%f: f32, %in: f32, %b: f32):
      %m1 = arith.mulf %in, %f fastmath<fast> : f32
      %0 = arith.addf %b, %m1 fastmath<fast> : f32
      linalg.yield %0 : f32
    } -> {{ output }}
{% endif %}
    %result = linalg.generic {
      indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]
    } ins(%convolved : {{ output }}) outs(%empty : {{ output }}) {
    ^bb0(%in: f32, %out: f32):
      %rectified = arith.maxnumf %in, %zero : f32
      linalg.yield %rectified : f32
    } -> {{ output }}
    return %result : {{ output }}
  }
}
