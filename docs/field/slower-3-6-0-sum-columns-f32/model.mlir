// The sum of each column.
func.func @main(%x: tensor<2048x2048xf32>) -> tensor<2048xf32> {
  %start = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2048xf32>
  %init = linalg.fill ins(%start : f32) outs(%empty : tensor<2048xf32>) -> tensor<2048xf32>
  %result = linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>],
    iterator_types = ["reduction", "parallel"]
  } ins(%x : tensor<2048x2048xf32>) outs(%init : tensor<2048xf32>) {
  ^bb0(%in: f32, %sum: f32):
    %r = arith.addf %sum, %in : f32
    linalg.yield %r : f32
  } -> tensor<2048xf32>
  return %result : tensor<2048xf32>
}
