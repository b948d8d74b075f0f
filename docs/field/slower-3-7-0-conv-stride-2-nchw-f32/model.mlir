// The first convolution of an image classifier: 7x7, stride 2, three channels.
func.func @main(%input: tensor<1x3x117x117xf32>, %filter: tensor<64x3x7x7xf32>) -> tensor<1x64x56x56xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x64x56x56xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  %result = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%input, %filter : tensor<1x3x117x117xf32>, tensor<64x3x7x7xf32>)
    outs(%init : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  return %result : tensor<1x64x56x56xf32>
}
