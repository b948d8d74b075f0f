// The heads of an attention brought before its words.
func.func @main(%x: tensor<4x256x16x64xf32>) -> tensor<4x16x256x64xf32> {
  %empty = tensor.empty() : tensor<4x16x256x64xf32>
  %result = linalg.transpose ins(%x : tensor<4x256x16x64xf32>)
    outs(%empty : tensor<4x16x256x64xf32>) permutation = [0, 2, 1, 3]
  return %result : tensor<4x16x256x64xf32>
}
