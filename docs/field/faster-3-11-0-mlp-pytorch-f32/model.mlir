// A product with the right matrix transposed, as PyTorch's linear layers have it.
func.func @main(%left: tensor<384x384xf32>, %right: tensor<384x384xf32>) -> tensor<384x384xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<384x384xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<384x384xf32>) -> tensor<384x384xf32>
  %result = linalg.generic {
    indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>
    ],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%left, %right : tensor<384x384xf32>, tensor<384x384xf32>) outs(%init : tensor<384x384xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %r = arith.addf %sum, %product : f32
    linalg.yield %r : f32
  } -> tensor<384x384xf32>
  return %result : tensor<384x384xf32>
}
