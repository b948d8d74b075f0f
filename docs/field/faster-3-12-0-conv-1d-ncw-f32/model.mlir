// A convolution of a sound, channels first.
func.func @main(%input: tensor<1x64x1026xf32>, %filter: tensor<128x64x3xf32>) -> tensor<1x128x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x128x1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x128x1024xf32>) -> tensor<1x128x1024xf32>
  %result = linalg.conv_1d_ncw_fcw {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}
    ins(%input, %filter : tensor<1x64x1026xf32>, tensor<128x64x3xf32>)
    outs(%init : tensor<1x128x1024xf32>) -> tensor<1x128x1024xf32>
  return %result : tensor<1x128x1024xf32>
}
