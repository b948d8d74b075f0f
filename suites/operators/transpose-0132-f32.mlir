// Many small matrices transposed.
func.func @main(%x: tensor<16x16x128x64xf32>) -> tensor<16x16x64x128xf32> {
  %empty = tensor.empty() : tensor<16x16x64x128xf32>
  %result = linalg.transpose ins(%x : tensor<16x16x128x64xf32>)
    outs(%empty : tensor<16x16x64x128xf32>) permutation = [0, 1, 3, 2]
  return %result : tensor<16x16x64x128xf32>
}
