// A 3x3 convolution of i8, channels last, summed in i32.
func.func @main(%input: tensor<1x30x30x64xi8>, %filter: tensor<3x3x64x64xi8>) -> tensor<1x28x28x64xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<1x28x28x64xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<1x28x28x64xi32>) -> tensor<1x28x28x64xi32>
  %result = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%input, %filter : tensor<1x30x30x64xi8>, tensor<3x3x64x64xi8>)
    outs(%init : tensor<1x28x28x64xi32>) -> tensor<1x28x28x64xi32>
  return %result : tensor<1x28x28x64xi32>
}
