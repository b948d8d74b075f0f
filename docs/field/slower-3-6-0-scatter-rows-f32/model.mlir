// Rows written into a table at their numbers, no two at one place, as into a cache of keys.
func.func @main(
    %rows: tensor<1024x512xf32>, %at: tensor<1024xi32>, %table: tensor<8192x512xf32>
) -> tensor<8192x512xf32> {
  %places = tensor.expand_shape %at [[0, 1]] output_shape [1024, 1] : tensor<1024xi32> into tensor<1024x1xi32>
  %result = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true)
    ins(%rows, %places : tensor<1024x512xf32>, tensor<1024x1xi32>) outs(%table : tensor<8192x512xf32>) {
  ^bb0(%new: f32, %old: f32):
    iree_linalg_ext.yield %new : f32
  } -> tensor<8192x512xf32>
  return %result : tensor<8192x512xf32>
}
