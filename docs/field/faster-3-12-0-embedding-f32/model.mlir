// Rows of a table by their numbers, as of a language model's words.
func.func @main(%table: tensor<8192x512xf32>, %rows: tensor<1024xi32>) -> tensor<1024x512xf32> {
  %empty = tensor.empty() : tensor<1024x512xf32>
  %result = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%rows : tensor<1024xi32>) outs(%empty : tensor<1024x512xf32>) {
  ^bb0(%row: i32, %out: f32):
    %i = arith.index_cast %row : i32 to index
    %j = linalg.index 1 : index
    %r = tensor.extract %table[%i, %j] : tensor<8192x512xf32>
    linalg.yield %r : f32
  } -> tensor<1024x512xf32>
  return %result : tensor<1024x512xf32>
}
