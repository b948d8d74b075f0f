// The sum of each row of i8, in i32.
func.func @main(%x: tensor<2048x2048xi8>) -> tensor<2048xi32> {
  %start = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<2048xi32>
  %init = linalg.fill ins(%start : i32) outs(%empty : tensor<2048xi32>) -> tensor<2048xi32>
  %result = linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<2048x2048xi8>) outs(%init : tensor<2048xi32>) {
  ^bb0(%in: i8, %sum: i32):
    %wide = arith.extsi %in : i8 to i32
    %r = arith.addi %sum, %wide : i32
    linalg.yield %r : i32
  } -> tensor<2048xi32>
  return %result : tensor<2048xi32>
}
