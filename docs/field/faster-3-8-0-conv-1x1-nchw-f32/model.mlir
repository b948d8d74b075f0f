// A 1x1 convolution, channels first: a product of matrices.
func.func @main(%input: tensor<1x128x28x28xf32>, %filter: tensor<256x128x1x1xf32>) -> tensor<1x256x28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x256x28x28xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x256x28x28xf32>) -> tensor<1x256x28x28xf32>
  %result = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%input, %filter : tensor<1x128x28x28xf32>, tensor<256x128x1x1xf32>)
    outs(%init : tensor<1x256x28x28xf32>) -> tensor<1x256x28x28xf32>
  return %result : tensor<1x256x28x28xf32>
}
