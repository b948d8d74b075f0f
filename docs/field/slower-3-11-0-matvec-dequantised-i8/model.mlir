// One sum of all.
func.func @main(%x: tensor<2048x2048xf32>) -> tensor<f32> {
  %start = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%start : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %result = linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ()>],
    iterator_types = ["reduction", "reduction"]
  } ins(%x : tensor<2048x2048xf32>) outs(%init : tensor<f32>) {
  ^bb0(%in: f32, %sum: f32):
    %r = arith.addf %sum, %in : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %result : tensor<f32>
}
