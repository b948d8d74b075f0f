// An image of twice the height and width, each pixel four times.
func.func @main(%image: tensor<64x64x64xf32>) -> tensor<64x128x128xf32> {
  %two = arith.constant 2 : index
  %empty = tensor.empty() : tensor<64x128x128xf32>
  %result = linalg.generic {
    indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>],
    iterator_types = ["parallel", "parallel", "parallel"]
  } outs(%empty : tensor<64x128x128xf32>) {
  ^bb0(%out: f32):
    %c = linalg.index 0 : index
    %h = linalg.index 1 : index
    %w = linalg.index 2 : index
    %y = arith.divui %h, %two : index
    %x = arith.divui %w, %two : index
    %r = tensor.extract %image[%c, %y, %x] : tensor<64x64x64xf32>
    linalg.yield %r : f32
  } -> tensor<64x128x128xf32>
  return %result : tensor<64x128x128xf32>
}
