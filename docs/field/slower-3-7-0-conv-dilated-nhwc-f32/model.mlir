// A 3x3 filter for each channel by itself, channels last.
func.func @main(%input: tensor<1x114x114x96xf32>, %filter: tensor<3x3x96xf32>) -> tensor<1x112x112x96xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x112x112x96xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x112x112x96xf32>) -> tensor<1x112x112x96xf32>
  %result = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%input, %filter : tensor<1x114x114x96xf32>, tensor<3x3x96xf32>)
    outs(%init : tensor<1x112x112x96xf32>) -> tensor<1x112x112x96xf32>
  return %result : tensor<1x112x112x96xf32>
}
