// A 3x3 convolution without padding, channels first.
func.func @main(%x: tensor<1x32x34x34xf32>, %filter: tensor<32x32x3x3xf32>) -> tensor<1x32x32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x32x32xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x32x32xf32>) -> tensor<1x32x32x32xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %filter : tensor<1x32x34x34xf32>, tensor<32x32x3x3xf32>)
      outs(%fill : tensor<1x32x32x32xf32>) -> tensor<1x32x32x32xf32>
  return %y : tensor<1x32x32x32xf32>
}
