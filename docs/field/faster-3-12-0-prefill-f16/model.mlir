module {
  func.func @main(%query: tensor<8x256x64xf16>, %key: tensor<8x256x64xf16>, %value: tensor<8x256x64xf16>) -> tensor<8x256x64xf16> {
    %zero = arith.constant 0.0 : f32
    %result_scale = arith.constant 0.125 : f32
    %result_earlier = arith.constant 0 : index
    %result_seen = arith.constant 0.0 : f16
    %result_hidden = arith.constant 0xFC00 : f16
    %result_mask_to = tensor.empty() : tensor<8x256x256xf16>
    %result_mask = linalg.generic {
      indexing_maps = [affine_map<(h, q, k) -> (h, q, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]
    } outs(%result_mask_to : tensor<8x256x256xf16>) {
    ^bb0(%out: f16):
      %row = linalg.index 1 : index
      %at = linalg.index 2 : index
      %last = arith.addi %row, %result_earlier : index
      %sees = arith.cmpi sle, %at, %last : index
      %r = arith.select %sees, %result_seen, %result_hidden : f16
      linalg.yield %r : f16
    } -> tensor<8x256x256xf16>
    %result_to = tensor.empty() : tensor<8x256x64xf16>
    %result = "iree_linalg_ext.attention"(%query, %key, %value, %result_scale, %result_mask, %result_to) <{
      indexing_maps = [affine_map<(h, q, e, d, k) -> (h, q, d)>, affine_map<(h, q, e, d, k) -> (h, k, d)>, affine_map<(h, q, e, d, k) -> (h, k, e)>, affine_map<(h, q, e, d, k) -> ()>, affine_map<(h, q, e, d, k) -> (h, q, k)>, affine_map<(h, q, e, d, k) -> (h, q, e)>],
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>
    }> ({
    ^bb0(%score: f32):
      "iree_linalg_ext.yield"(%score) : (f32) -> ()
    }) : (tensor<8x256x64xf16>, tensor<8x256x64xf16>, tensor<8x256x64xf16>, f32, tensor<8x256x256xf16>, tensor<8x256x64xf16>) -> tensor<8x256x64xf16>
    return %result : tensor<8x256x64xf16>
  }
}