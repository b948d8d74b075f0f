// A large matrix transposed.
func.func @main(%x: tensor<2048x1024xf32>) -> tensor<1024x2048xf32> {
  %empty = tensor.empty() : tensor<1024x2048xf32>
  %result = linalg.transpose ins(%x : tensor<2048x1024xf32>) outs(%empty : tensor<1024x2048xf32>) permutation = [1, 0]
  return %result : tensor<1024x2048xf32>
}
