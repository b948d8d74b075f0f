// A 3x3 convolution of f16, channels last, summed in f32.
func.func @main(%input: tensor<1x30x30x64xf16>, %filter: tensor<3x3x64x64xf16>) -> tensor<1x28x28x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x28x28x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32>
  %result = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%input, %filter : tensor<1x30x30x64xf16>, tensor<3x3x64x64xf16>)
    outs(%init : tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32>
  return %result : tensor<1x28x28x64xf32>
}
