// The sum of each row, their number and width open.
func.func @main(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x?xf32>
  %start = arith.constant 0.0 : f32
  %empty = tensor.empty(%rows) : tensor<?xf32>
  %init = linalg.fill ins(%start : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %result = linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<?x?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%in: f32, %sum: f32):
    %r = arith.addf %sum, %in : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %result : tensor<?xf32>
}
