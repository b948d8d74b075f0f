// A vector added to each row, and a ReLU.
func.func @main(%x: tensor<2048x1024xf32>, %bias: tensor<1024xf32>) -> tensor<2048x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2048x1024xf32>
  %result = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %bias : tensor<2048x1024xf32>, tensor<1024xf32>) outs(%empty : tensor<2048x1024xf32>) {
  ^bb0(%in: f32, %b: f32, %out: f32):
    %sum = arith.addf %in, %b : f32
    %r = arith.maximumf %sum, %zero : f32
    linalg.yield %r : f32
  } -> tensor<2048x1024xf32>
  return %result : tensor<2048x1024xf32>
}
