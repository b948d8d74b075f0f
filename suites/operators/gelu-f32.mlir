// A GELU by the error function.
func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 0.70710678 : f32
  %empty = tensor.empty() : tensor<1024x1024xf32>
  %result = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x : tensor<1024x1024xf32>) outs(%empty : tensor<1024x1024xf32>) {
  ^bb0(%in: f32, %out: f32):
    %scaled = arith.mulf %in, %root : f32
    %erf = math.erf %scaled : f32
    %above = arith.addf %erf, %one : f32
    %half_x = arith.mulf %in, %half : f32
    %r = arith.mulf %half_x, %above : f32
    linalg.yield %r : f32
  } -> tensor<1024x1024xf32>
  return %result : tensor<1024x1024xf32>
}
