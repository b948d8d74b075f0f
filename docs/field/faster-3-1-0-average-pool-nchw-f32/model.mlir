// The mean of each 2x2 window, channels first.
func.func @main(%image: tensor<1x64x224x224xf32>) -> tensor<1x64x112x112xf32> {
  %start = arith.constant 0.0 : f32
  %window = tensor.empty() : tensor<2x2xf32>
  %empty = tensor.empty() : tensor<1x64x112x112xf32>
  %init = linalg.fill ins(%start : f32) outs(%empty : tensor<1x64x112x112xf32>) -> tensor<1x64x112x112xf32>
  %result = linalg.pooling_nchw_sum {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%image, %window : tensor<1x64x224x224xf32>, tensor<2x2xf32>)
    outs(%init : tensor<1x64x112x112xf32>) -> tensor<1x64x112x112xf32>
  %share = arith.constant 0.25 : f32
  %means_empty = tensor.empty() : tensor<1x64x112x112xf32>
  %means = linalg.generic {
    indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]
  } ins(%result : tensor<1x64x112x112xf32>) outs(%means_empty : tensor<1x64x112x112xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.mulf %in, %share : f32
    linalg.yield %r : f32
  } -> tensor<1x64x112x112xf32>
  return %means : tensor<1x64x112x112xf32>
}
