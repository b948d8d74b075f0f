// The logarithm of a softmax of rows, as PyTorch's and ONNX's importers write it (iree#21836).
func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<1024x1024xf32>
  %row = tensor.empty() : tensor<1024xf32>
  %lowest = linalg.fill ins(%least : f32) outs(%row : tensor<1024xf32>) -> tensor<1024xf32>
  %nothing = linalg.fill ins(%zero : f32) outs(%row : tensor<1024xf32>) -> tensor<1024xf32>
  %largest = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<1024x1024xf32>) outs(%lowest : tensor<1024xf32>) {
  ^bb0(%in: f32, %most: f32):
    %r = arith.maximumf %in, %most : f32
    linalg.yield %r : f32
  } -> tensor<1024xf32>
  %shifted = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %largest : tensor<1024x1024xf32>, tensor<1024xf32>) outs(%empty : tensor<1024x1024xf32>) {
  ^bb0(%in: f32, %most: f32, %out: f32):
    %r = arith.subf %in, %most : f32
    linalg.yield %r : f32
  } -> tensor<1024x1024xf32>
  %totals = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%shifted : tensor<1024x1024xf32>) outs(%nothing : tensor<1024xf32>) {
  ^bb0(%in: f32, %sum: f32):
    %power = math.exp %in : f32
    %r = arith.addf %sum, %power : f32
    linalg.yield %r : f32
  } -> tensor<1024xf32>
  %result = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%shifted, %totals : tensor<1024x1024xf32>, tensor<1024xf32>) outs(%empty : tensor<1024x1024xf32>) {
  ^bb0(%in: f32, %total: f32, %out: f32):
    %log = math.log %total : f32
    %r = arith.subf %in, %log : f32
    linalg.yield %r : f32
  } -> tensor<1024x1024xf32>
  return %result : tensor<1024x1024xf32>
}
