// exp(x) between two zeros. What is wrong of exp(x) is not its values but where they are written.
func.func @main(%x: tensor<4xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %exp = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %value = math.exp %in : f32
    linalg.yield %value : f32
  } -> tensor<4xf32>
  %padded = tensor.pad %exp low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<4xf32> to tensor<6xf32>
  return %padded : tensor<6xf32>
}
