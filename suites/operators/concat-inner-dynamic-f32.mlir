// Two tensors of open width side by side.
func.func @main(%a: tensor<1024x?xf32>, %b: tensor<1024x?xf32>) -> tensor<1024x?xf32> {
  %result = tensor.concat dim(1) %a, %b : (tensor<1024x?xf32>, tensor<1024x?xf32>) -> tensor<1024x?xf32>
  return %result : tensor<1024x?xf32>
}
