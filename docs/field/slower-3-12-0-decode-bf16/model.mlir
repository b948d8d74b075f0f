module {
  func.func @main(%query: tensor<8x1x128xbf16>, %key: tensor<8x4096x128xbf16>, %value: tensor<8x4096x128xbf16>) -> tensor<8x1x128xbf16> {
    %zero = arith.constant 0.0 : f32
    %result_scale = arith.constant 0.08838834764831845 : f32
    %result_to = tensor.empty() : tensor<8x1x128xbf16>
    %result = "iree_linalg_ext.attention"(%query, %key, %value, %result_scale, %result_to) <{
      indexing_maps = [affine_map<(h, q, e, d, k) -> (h, q, d)>, affine_map<(h, q, e, d, k) -> (h, k, d)>, affine_map<(h, q, e, d, k) -> (h, k, e)>, affine_map<(h, q, e, d, k) -> ()>, affine_map<(h, q, e, d, k) -> (h, q, e)>],
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>
    }> ({
    ^bb0(%score: f32):
      "iree_linalg_ext.yield"(%score) : (f32) -> ()
    }) : (tensor<8x1x128xbf16>, tensor<8x4096x128xbf16>, tensor<8x4096x128xbf16>, f32, tensor<8x1x128xbf16>) -> tensor<8x1x128xbf16>
    return %result : tensor<8x1x128xbf16>
  }
}