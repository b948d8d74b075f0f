// Two tensors of open length one behind the other along the outermost axis (iree#19092).
func.func @main(%a: tensor<4x?x4x64xf32>, %b: tensor<4x?x4x64xf32>) -> tensor<8x?x4x64xf32> {
  %result = tensor.concat dim(0) %a, %b : (tensor<4x?x4x64xf32>, tensor<4x?x4x64xf32>) -> tensor<8x?x4x64xf32>
  return %result : tensor<8x?x4x64xf32>
}
