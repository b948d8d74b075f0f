// A matrix times a vector.
func.func @main(%matrix: tensor<2048x2048xf32>, %vector: tensor<2048xf32>) -> tensor<2048xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2048xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2048xf32>) -> tensor<2048xf32>
  %result = linalg.matvec
    ins(%matrix, %vector : tensor<2048x2048xf32>, tensor<2048xf32>) outs(%init : tensor<2048xf32>) -> tensor<2048xf32>
  return %result : tensor<2048xf32>
}
