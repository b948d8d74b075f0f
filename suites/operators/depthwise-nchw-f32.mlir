// A 3x3 filter for each channel by itself, channels first.
func.func @main(%input: tensor<1x96x58x58xf32>, %filter: tensor<96x3x3xf32>) -> tensor<1x96x56x56xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x96x56x56xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x96x56x56xf32>) -> tensor<1x96x56x56xf32>
  %result = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%input, %filter : tensor<1x96x58x58xf32>, tensor<96x3x3xf32>)
    outs(%init : tensor<1x96x56x56xf32>) -> tensor<1x96x56x56xf32>
  return %result : tensor<1x96x56x56xf32>
}
