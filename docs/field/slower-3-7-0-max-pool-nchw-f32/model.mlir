// The largest of each 3x3 window, stride 2, channels first.
func.func @main(%image: tensor<1x64x225x225xf32>) -> tensor<1x64x112x112xf32> {
  %start = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<3x3xf32>
  %empty = tensor.empty() : tensor<1x64x112x112xf32>
  %init = linalg.fill ins(%start : f32) outs(%empty : tensor<1x64x112x112xf32>) -> tensor<1x64x112x112xf32>
  %result = linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%image, %window : tensor<1x64x225x225xf32>, tensor<3x3xf32>)
    outs(%init : tensor<1x64x112x112xf32>) -> tensor<1x64x112x112xf32>
  return %result : tensor<1x64x112x112xf32>
}
