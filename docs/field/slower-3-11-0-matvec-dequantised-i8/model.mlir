// Weights of i8 in groups of 32 with a scale each, times a vector: what a language model does for each word.
func.func @main(
    %weights: tensor<2048x64x32xi8>, %scales: tensor<2048x64xf32>, %vector: tensor<64x32xf32>
) -> tensor<2048xf32> {
  %zero = arith.constant 0.0 : f32
  %wide_empty = tensor.empty() : tensor<2048x64x32xf32>
  %wide = linalg.generic {
    indexing_maps = [
      affine_map<(n, g, k) -> (n, g, k)>, affine_map<(n, g, k) -> (n, g)>, affine_map<(n, g, k) -> (n, g, k)>
    ],
    iterator_types = ["parallel", "parallel", "parallel"]
  } ins(%weights, %scales : tensor<2048x64x32xi8>, tensor<2048x64xf32>) outs(%wide_empty : tensor<2048x64x32xf32>) {
  ^bb0(%weight: i8, %scale: f32, %out: f32):
    %float = arith.sitofp %weight : i8 to f32
    %r = arith.mulf %float, %scale : f32
    linalg.yield %r : f32
  } -> tensor<2048x64x32xf32>
  %empty = tensor.empty() : tensor<2048xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2048xf32>) -> tensor<2048xf32>
  %result = linalg.generic {
    indexing_maps = [affine_map<(n, g, k) -> (g, k)>, affine_map<(n, g, k) -> (n, g, k)>, affine_map<(n, g, k) -> (n)>],
    iterator_types = ["parallel", "reduction", "reduction"]
  } ins(%vector, %wide : tensor<64x32xf32>, tensor<2048x64x32xf32>) outs(%init : tensor<2048xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %r = arith.addf %sum, %product : f32
    linalg.yield %r : f32
  } -> tensor<2048xf32>
  return %result : tensor<2048xf32>
}
