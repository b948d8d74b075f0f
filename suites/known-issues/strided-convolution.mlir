// A convolution with one output position, whose input is longer than its filter; with a stride of 1 it has two.
func.func @main(%x: tensor<1x2x4xf32>, %filter: tensor<2x2x3xf32>) -> tensor<1x2x1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x2x1xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x2x1xf32>) -> tensor<1x2x1xf32>
  %y = linalg.conv_1d_ncw_fcw {strides = dense<2> : tensor<1xi64>}
      ins(%x, %filter : tensor<1x2x4xf32>, tensor<2x2x3xf32>) outs(%fill : tensor<1x2x1xf32>) -> tensor<1x2x1xf32>
  return %y : tensor<1x2x1xf32>
}
