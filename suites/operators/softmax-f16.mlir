// A softmax of rows of f16, computed in f32.
func.func @main(%x: tensor<1024x1024xf16>) -> tensor<1024x1024xf16> {
  %wide_empty = tensor.empty() : tensor<1024x1024xf32>
  %wide = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x : tensor<1024x1024xf16>) outs(%wide_empty : tensor<1024x1024xf32>) {
  ^bb0(%in: f16, %out: f32):
    %r = arith.extf %in : f16 to f32
    linalg.yield %r : f32
  } -> tensor<1024x1024xf32>
  %softmax = linalg.softmax dimension(1)
    ins(%wide : tensor<1024x1024xf32>) outs(%wide_empty : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %empty = tensor.empty() : tensor<1024x1024xf16>
  %result = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%softmax : tensor<1024x1024xf32>) outs(%empty : tensor<1024x1024xf16>) {
  ^bb0(%in: f32, %out: f16):
    %r = arith.truncf %in : f32 to f16
    linalg.yield %r : f16
  } -> tensor<1024x1024xf16>
  return %result : tensor<1024x1024xf16>
}
