// The largest along the middle axis of three (iree#10350).
func.func @main(%x: tensor<64x256x151xf32>) -> tensor<64x151xf32> {
  %start = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<64x151xf32>
  %init = linalg.fill ins(%start : f32) outs(%empty : tensor<64x151xf32>) -> tensor<64x151xf32>
  %result = linalg.generic {
    indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>],
    iterator_types = ["parallel", "reduction", "parallel"]
  } ins(%x : tensor<64x256x151xf32>) outs(%init : tensor<64x151xf32>) {
  ^bb0(%in: f32, %sum: f32):
    %r = arith.maximumf %sum, %in : f32
    linalg.yield %r : f32
  } -> tensor<64x151xf32>
  return %result : tensor<64x151xf32>
}
