// A 3x3 convolution, channels last in the filter too.
func.func @main(%input: tensor<1x58x58x64xf32>, %filter: tensor<64x3x3x64xf32>) -> tensor<1x56x56x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x56x56x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  %result = linalg.conv_2d_nhwc_fhwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%input, %filter : tensor<1x58x58x64xf32>, tensor<64x3x3x64xf32>)
    outs(%init : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  return %result : tensor<1x56x56x64xf32>
}
