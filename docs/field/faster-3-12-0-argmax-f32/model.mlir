// The place of the largest in each row.
func.func @main(%x: tensor<512x2048xf32>) -> tensor<512xi64> {
  %least = arith.constant 0xFF800000 : f32
  %first = arith.constant 0 : i64
  %values = tensor.empty() : tensor<512xf32>
  %places = tensor.empty() : tensor<512xi64>
  %lowest = linalg.fill ins(%least : f32) outs(%values : tensor<512xf32>) -> tensor<512xf32>
  %zeros = linalg.fill ins(%first : i64) outs(%places : tensor<512xi64>) -> tensor<512xi64>
  %result:2 = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<512x2048xf32>) outs(%lowest, %zeros : tensor<512xf32>, tensor<512xi64>) {
  ^bb0(%in: f32, %most: f32, %at: i64):
    %here = linalg.index 1 : index
    %place = arith.index_cast %here : index to i64
    %larger = arith.cmpf ogt, %in, %most : f32
    %value = arith.maximumf %in, %most : f32
    %r = arith.select %larger, %place, %at : i64
    linalg.yield %value, %r : f32, i64
  } -> (tensor<512xf32>, tensor<512xi64>)
  return %result#1 : tensor<512xi64>
}
