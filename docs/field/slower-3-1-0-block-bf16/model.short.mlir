

module {
  func.func @main(%x: tensor<256x256xbf16>) -> tensor<256x256xbf16> {
    %zero = arith.constant 0.0 : f32
    %weight_query = arith.constant dense_resource<weight_query> : tensor<256x256xbf16>
    %weight_key = arith.constant dense_resource<weight_key> : tensor<256x256xbf16>
    %weight_value = arith.constant dense_resource<weight_value> : tensor<256x256xbf16>
    %weight_out = arith.constant dense_resource<weight_out> : tensor<256x256xbf16>
    %weight_up = arith.constant dense_resource<weight_up> : tensor<256x1024xbf16>
    %weight_down = arith.constant dense_resource<weight_down> : tensor<1024x256xbf16>
    %norm0 = arith.constant dense_resource<norm0> : tensor<256xf32>
    %shift0 = arith.constant dense_resource<shift0> : tensor<256xf32>
    %norm1 = arith.constant dense_resource<norm1> : tensor<256xf32>
    %shift1 = arith.constant dense_resource<shift1> : tensor<256xf32>
    %before_count = arith.constant 256.0 : f32
    %before_epsilon = arith.constant 1.0e-5 : f32
    %x_wide_to = tensor.empty() : tensor<256x256xf32>
    %x_wide = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%x : tensor<256x256xbf16>) outs(%x_wide_to : tensor<256x256xf32>) {
    ^bb0(%in0: bf16, %out: f32):
      %r = arith.extf %in0 : bf16 to f32
      linalg.yield %r : f32
    } -> tensor<256x256xf32>
    %before_sum_to_empty = tensor.empty() : tensor<256xf32>
    %before_sum_to = linalg.fill ins(%zero : f32) outs(%before_sum_to_empty : tensor<256xf32>) -> tensor<256xf32>
    %before_sum = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>],
      iterator_types = ["parallel", "reduction"]
    } ins(%x_wide : tensor<256x256xf32>) outs(%before_sum_to : tensor<256xf32>) {
    ^bb0(%in0: f32, %out: f32):
      %r = arith.addf %out, %in0 : f32
      linalg.yield %r : f32
    } -> tensor<256xf32>
    %before_centred_to = tensor.empty() : tensor<256x256xf32>
    %before_centred = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%x_wide, %before_sum : tensor<256x256xf32>, tensor<256xf32>) outs(%before_centred_to : tensor<256x256xf32>) {
    ^bb0(%in0: f32, %in1: f32, %out: f32):
      %mean = arith.divf %in1, %before_count : f32
      %r = arith.subf %in0, %mean : f32
      linalg.yield %r : f32
    } -> tensor<256x256xf32>
    %before_squares_to_empty = tensor.empty() : tensor<256xf32>
    %before_squares_to = linalg.fill ins(%zero : f32) outs(%before_squares_to_empty : tensor<256xf32>) -> tensor<256xf32>
    %before_squares = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>],
      iterator_types = ["parallel", "reduction"]
    } ins(%before_centred : tensor<256x256xf32>) outs(%before_squares_to : tensor<256xf32>) {
    ^bb0(%in0: f32, %out: f32):
      %square = arith.mulf %in0, %in0 : f32
      %r = arith.addf %out, %square : f32
      linalg.yield %r : f32
    } -> tensor<256xf32>
    %before_exact_to = tensor.empty() : tensor<256x256xf32>
    %before_exact = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>, affine_map<(q, d) -> (d)>, affine_map<(q, d) -> (d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%before_centred, %before_squares, %norm0, %shift0 : tensor<256x256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) outs(%before_exact_to : tensor<256x256xf32>) {
    ^bb0(%in0: f32, %in1: f32, %in2: f32, %in3: f32, %out: f32):
      %mean = arith.divf %in1, %before_count : f32
      %above = arith.addf %mean, %before_epsilon : f32
      %inverse = math.rsqrt %above : f32
      %scaled = arith.mulf %in0, %inverse : f32
      %r0 = arith.mulf %scaled, %in2 : f32
      %r = arith.addf %r0, %in3 : f32
      linalg.yield %r : f32
    } -> tensor<256x256xf32>
    %before_to = tensor.empty() : tensor<256x256xbf16>
    %before = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%before_exact : tensor<256x256xf32>) outs(%before_to : tensor<256x256xbf16>) {
    ^bb0(%in0: f32, %out: bf16):
      %r = arith.truncf %in0 : f32 to bf16
      linalg.yield %r : bf16
    } -> tensor<256x256xbf16>
    %query_flat_start_empty = tensor.empty() : tensor<256x256xf32>
    %query_flat_start = linalg.fill ins(%zero : f32) outs(%query_flat_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %query_flat_exact = linalg.matmul ins(%before, %weight_query : tensor<256x256xbf16>, tensor<256x256xbf16>) outs(%query_flat_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %query_flat_to = tensor.empty() : tensor<256x256xbf16>
    %query_flat = linalg.generic {
      indexing_maps = [affine_map<(q, c) -> (q, c)>, affine_map<(q, c) -> (q, c)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%query_flat_exact : tensor<256x256xf32>) outs(%query_flat_to : tensor<256x256xbf16>) {
    ^bb0(%in0: f32, %out: bf16):
      %r = arith.truncf %in0 : f32 to bf16
      linalg.yield %r : bf16
    } -> tensor<256x256xbf16>
    %query_split = tensor.expand_shape %query_flat [[0], [1, 2]] output_shape [256, 4, 64] : tensor<256x256xbf16> into tensor<256x4x64xbf16>
    %query_to = tensor.empty() : tensor<4x256x64xbf16>
    %query = linalg.transpose ins(%query_split : tensor<256x4x64xbf16>) outs(%query_to : tensor<4x256x64xbf16>) permutation = [1, 0, 2]
    %key_flat_start_empty = tensor.empty() : tensor<256x256xf32>
    %key_flat_start = linalg.fill ins(%zero : f32) outs(%key_flat_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %key_flat_exact = linalg.matmul ins(%before, %weight_key : tensor<256x256xbf16>, tensor<256x256xbf16>) outs(%key_flat_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %key_flat_to = tensor.empty() : tensor<256x256xbf16>
    %key_flat = linalg.generic {
      indexing_maps = [affine_map<(q, c) -> (q, c)>, affine_map<(q, c) -> (q, c)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%key_flat_exact : tensor<256x256xf32>) outs(%key_flat_to : tensor<256x256xbf16>) {
    ^bb0(%in0: f32, %out: bf16):
      %r = arith.truncf %in0 : f32 to bf16
      linalg.yield %r : bf16
    } -> tensor<256x256xbf16>
    %key_split = tensor.expand_shape %key_flat [[0], [1, 2]] output_shape [256, 4, 64] : tensor<256x256xbf16> into tensor<256x4x64xbf16>
    %key_to = tensor.empty() : tensor<4x256x64xbf16>
    %key = linalg.transpose ins(%key_split : tensor<256x4x64xbf16>) outs(%key_to : tensor<4x256x64xbf16>) permutation = [1, 0, 2]
    %value_flat_start_empty = tensor.empty() : tensor<256x256xf32>
    %value_flat_start = linalg.fill ins(%zero : f32) outs(%value_flat_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %value_flat_exact = linalg.matmul ins(%before, %weight_value : tensor<256x256xbf16>, tensor<256x256xbf16>) outs(%value_flat_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %value_flat_to = tensor.empty() : tensor<256x256xbf16>
    %value_flat = linalg.generic {
      indexing_maps = [affine_map<(q, c) -> (q, c)>, affine_map<(q, c) -> (q, c)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%value_flat_exact : tensor<256x256xf32>) outs(%value_flat_to : tensor<256x256xbf16>) {
    ^bb0(%in0: f32, %out: bf16):
      %r = arith.truncf %in0 : f32 to bf16
      linalg.yield %r : bf16
    } -> tensor<256x256xbf16>
    %value_split = tensor.expand_shape %value_flat [[0], [1, 2]] output_shape [256, 4, 64] : tensor<256x256xbf16> into tensor<256x4x64xbf16>
    %value_to = tensor.empty() : tensor<4x256x64xbf16>
    %value = linalg.transpose ins(%value_split : tensor<256x4x64xbf16>) outs(%value_to : tensor<4x256x64xbf16>) permutation = [1, 0, 2]
    %attended_scale = arith.constant 0.125 : f32
    %attended_earlier = arith.constant 0 : index
    %attended_seen = arith.constant 0.0 : bf16
    %attended_hidden = arith.constant 0xFF80 : bf16
    %attended_mask_to = tensor.empty() : tensor<4x256x256xbf16>
    %attended_mask = linalg.generic {
      indexing_maps = [affine_map<(h, q, k) -> (h, q, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]
    } outs(%attended_mask_to : tensor<4x256x256xbf16>) {
    ^bb0(%out: bf16):
      %row = linalg.index 1 : index
      %at = linalg.index 2 : index
      %last = arith.addi %row, %attended_earlier : index
      %sees = arith.cmpi sle, %at, %last : index
      %r = arith.select %sees, %attended_seen, %attended_hidden : bf16
      linalg.yield %r : bf16
    } -> tensor<4x256x256xbf16>
    %attended_to = tensor.empty() : tensor<4x256x64xbf16>
    %attended = "iree_linalg_ext.attention"(%query, %key, %value, %attended_scale, %attended_mask, %attended_to) <{
      indexing_maps = [affine_map<(h, q, e, d, k) -> (h, q, d)>, affine_map<(h, q, e, d, k) -> (h, k, d)>, affine_map<(h, q, e, d, k) -> (h, k, e)>, affine_map<(h, q, e, d, k) -> ()>, affine_map<(h, q, e, d, k) -> (h, q, k)>, affine_map<(h, q, e, d, k) -> (h, q, e)>],
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>
    }> ({
    ^bb0(%score: f32):
      "iree_linalg_ext.yield"(%score) : (f32) -> ()
    }) : (tensor<4x256x64xbf16>, tensor<4x256x64xbf16>, tensor<4x256x64xbf16>, f32, tensor<4x256x256xbf16>, tensor<4x256x64xbf16>) -> tensor<4x256x64xbf16>
    %joined_to = tensor.empty() : tensor<256x4x64xbf16>
    %joined = linalg.transpose ins(%attended : tensor<4x256x64xbf16>) outs(%joined_to : tensor<256x4x64xbf16>) permutation = [1, 0, 2]
    %context = tensor.collapse_shape %joined [[0], [1, 2]] : tensor<256x4x64xbf16> into tensor<256x256xbf16>
    %projected_start_empty = tensor.empty() : tensor<256x256xf32>
    %projected_start = linalg.fill ins(%zero : f32) outs(%projected_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %projected_exact = linalg.matmul ins(%context, %weight_out : tensor<256x256xbf16>, tensor<256x256xbf16>) outs(%projected_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %projected_to = tensor.empty() : tensor<256x256xbf16>
    %projected = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%projected_exact : tensor<256x256xf32>) outs(%projected_to : tensor<256x256xbf16>) {
    ^bb0(%in0: f32, %out: bf16):
      %r = arith.truncf %in0 : f32 to bf16
      linalg.yield %r : bf16
    } -> tensor<256x256xbf16>
    %y_to = tensor.empty() : tensor<256x256xbf16>
    %y = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%x, %projected : tensor<256x256xbf16>, tensor<256x256xbf16>) outs(%y_to : tensor<256x256xbf16>) {
    ^bb0(%in0: bf16, %in1: bf16, %out: bf16):
      %r = arith.addf %in0, %in1 : bf16
      linalg.yield %r : bf16
    } -> tensor<256x256xbf16>
    %between_count = arith.constant 256.0 : f32
    %between_epsilon = arith.constant 1.0e-5 : f32
    %y_wide_to = tensor.empty() : tensor<256x256xf32>
    %y_wide = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%y : tensor<256x256xbf16>) outs(%y_wide_to : tensor<256x256xf32>) {
    ^bb0(%in0: bf16, %out: f32):
      %r = arith.extf %in0 : bf16 to f32
      linalg.yield %r : f32
    } -> tensor<256x256xf32>
    %between_sum_to_empty = tensor.empty() : tensor<256xf32>
    %between_sum_to = linalg.fill ins(%zero : f32) outs(%between_sum_to_empty : tensor<256xf32>) -> tensor<256xf32>
    %between_sum = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>],
      iterator_types = ["parallel", "reduction"]
    } ins(%y_wide : tensor<256x256xf32>) outs(%between_sum_to : tensor<256xf32>) {
    ^bb0(%in0: f32, %out: f32):
      %r = arith.addf %out, %in0 : f32
      linalg.yield %r : f32
    } -> tensor<256xf32>
    %between_centred_to = tensor.empty() : tensor<256x256xf32>
    %between_centred = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%y_wide, %between_sum : tensor<256x256xf32>, tensor<256xf32>) outs(%between_centred_to : tensor<256x256xf32>) {
    ^bb0(%in0: f32, %in1: f32, %out: f32):
      %mean = arith.divf %in1, %between_count : f32
      %r = arith.subf %in0, %mean : f32
      linalg.yield %r : f32
    } -> tensor<256x256xf32>
    %between_squares_to_empty = tensor.empty() : tensor<256xf32>
    %between_squares_to = linalg.fill ins(%zero : f32) outs(%between_squares_to_empty : tensor<256xf32>) -> tensor<256xf32>
    %between_squares = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>],
      iterator_types = ["parallel", "reduction"]
    } ins(%between_centred : tensor<256x256xf32>) outs(%between_squares_to : tensor<256xf32>) {
    ^bb0(%in0: f32, %out: f32):
      %square = arith.mulf %in0, %in0 : f32
      %r = arith.addf %out, %square : f32
      linalg.yield %r : f32
    } -> tensor<256xf32>
    %between_exact_to = tensor.empty() : tensor<256x256xf32>
    %between_exact = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q)>, affine_map<(q, d) -> (d)>, affine_map<(q, d) -> (d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%between_centred, %between_squares, %norm1, %shift1 : tensor<256x256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) outs(%between_exact_to : tensor<256x256xf32>) {
    ^bb0(%in0: f32, %in1: f32, %in2: f32, %in3: f32, %out: f32):
      %mean = arith.divf %in1, %between_count : f32
      %above = arith.addf %mean, %between_epsilon : f32
      %inverse = math.rsqrt %above : f32
      %scaled = arith.mulf %in0, %inverse : f32
      %r0 = arith.mulf %scaled, %in2 : f32
      %r = arith.addf %r0, %in3 : f32
      linalg.yield %r : f32
    } -> tensor<256x256xf32>
    %between_to = tensor.empty() : tensor<256x256xbf16>
    %between = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%between_exact : tensor<256x256xf32>) outs(%between_to : tensor<256x256xbf16>) {
    ^bb0(%in0: f32, %out: bf16):
      %r = arith.truncf %in0 : f32 to bf16
      linalg.yield %r : bf16
    } -> tensor<256x256xbf16>
    %up_start_empty = tensor.empty() : tensor<256x1024xf32>
    %up_start = linalg.fill ins(%zero : f32) outs(%up_start_empty : tensor<256x1024xf32>) -> tensor<256x1024xf32>
    %up_exact = linalg.matmul ins(%between, %weight_up : tensor<256x256xbf16>, tensor<256x1024xbf16>) outs(%up_start : tensor<256x1024xf32>) -> tensor<256x1024xf32>
    %up_to = tensor.empty() : tensor<256x1024xbf16>
    %up = linalg.generic {
      indexing_maps = [affine_map<(q, f) -> (q, f)>, affine_map<(q, f) -> (q, f)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%up_exact : tensor<256x1024xf32>) outs(%up_to : tensor<256x1024xbf16>) {
    ^bb0(%in0: f32, %out: bf16):
      %r = arith.truncf %in0 : f32 to bf16
      linalg.yield %r : bf16
    } -> tensor<256x1024xbf16>
    %active_half = arith.constant 0.5 : f32
    %active_one = arith.constant 1.0 : f32
    %active_root = arith.constant 0.70710678118654752 : f32
    %up_wide_to = tensor.empty() : tensor<256x1024xf32>
    %up_wide = linalg.generic {
      indexing_maps = [affine_map<(q, f) -> (q, f)>, affine_map<(q, f) -> (q, f)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%up : tensor<256x1024xbf16>) outs(%up_wide_to : tensor<256x1024xf32>) {
    ^bb0(%in0: bf16, %out: f32):
      %r = arith.extf %in0 : bf16 to f32
      linalg.yield %r : f32
    } -> tensor<256x1024xf32>
    %active_exact_to = tensor.empty() : tensor<256x1024xf32>
    %active_exact = linalg.generic {
      indexing_maps = [affine_map<(q, f) -> (q, f)>, affine_map<(q, f) -> (q, f)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%up_wide : tensor<256x1024xf32>) outs(%active_exact_to : tensor<256x1024xf32>) {
    ^bb0(%in0: f32, %out: f32):
      %scaled = arith.mulf %in0, %active_root : f32
      %erf = math.erf %scaled : f32
      %above = arith.addf %erf, %active_one : f32
      %half = arith.mulf %in0, %active_half : f32
      %r = arith.mulf %half, %above : f32
      linalg.yield %r : f32
    } -> tensor<256x1024xf32>
    %active_to = tensor.empty() : tensor<256x1024xbf16>
    %active = linalg.generic {
      indexing_maps = [affine_map<(q, f) -> (q, f)>, affine_map<(q, f) -> (q, f)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%active_exact : tensor<256x1024xf32>) outs(%active_to : tensor<256x1024xbf16>) {
    ^bb0(%in0: f32, %out: bf16):
      %r = arith.truncf %in0 : f32 to bf16
      linalg.yield %r : bf16
    } -> tensor<256x1024xbf16>
    %down_start_empty = tensor.empty() : tensor<256x256xf32>
    %down_start = linalg.fill ins(%zero : f32) outs(%down_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %down_exact = linalg.matmul ins(%active, %weight_down : tensor<256x1024xbf16>, tensor<1024x256xbf16>) outs(%down_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %down_to = tensor.empty() : tensor<256x256xbf16>
    %down = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%down_exact : tensor<256x256xf32>) outs(%down_to : tensor<256x256xbf16>) {
    ^bb0(%in0: f32, %out: bf16):
      %r = arith.truncf %in0 : f32 to bf16
      linalg.yield %r : bf16
    } -> tensor<256x256xbf16>
    %result_to = tensor.empty() : tensor<256x256xbf16>
    %result = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%y, %down : tensor<256x256xbf16>, tensor<256x256xbf16>) outs(%result_to : tensor<256x256xbf16>) {
    ^bb0(%in0: bf16, %in1: bf16, %out: bf16):
      %r = arith.addf %in0, %in1 : bf16
      linalg.yield %r : bf16
    } -> tensor<256x256xbf16>
    return %result : tensor<256x256xbf16>
  }
}
{-#
  dialect_resources: {
    builtin: {
      weight_query: "0x02000000dd3db7bd843df13d9a3bd63ce9bde33dea3c0dbd803df6bc72bc53bd0c3df83c173d213cea3bdfba603d383dc03d6d3d72bdb13c76bcb83d10bc86bcf33b843c093dffbc3abd90bda33ca8bddfbc633b3c3d90bbab3c3b3d82bd0f3c0fbe3bbeb33d5fbc7abd1fbca2bde8bde2bc0b3d6ebcbd3b623dcebcdd3c2b3d233cf5bc3e3d4ebd833d523da73dbd3de7bd653d2f3bcfbd123d08be10bdfd3ba43bc33c2abd93bd81bd4abc72bd38bd24bce8bcccbd41bd3e3d3d3df0bcb83d8b3d19bcd1bc153da23d073c6b3c523d89bdacbd7fbc783de93dadbcdc3c253d48bc8fbcccbd303d72bdafbd5d3d00bd0ebd81bda1bb603dc6b9b13de03da8bc42bd2bbd61bd9cbccdbcb63d953dba3de53d11bea53d8f3d83bc773b27bd27bd83bdd9bd7a3d1b3d54bd943d06bb913d15bee3bc8a3d13be39bd1bbdf03dedbbc43d5d3cb1bc633dbabd06be023dcdbd9bbd0e3d593b5e3d87bd6fbde6bc05bcbc3c223d103de43ab73dc33d083d583dd4bc83bd113ad2bdcd3ccb3d51bdcfbd20bc46bd19bd153daa3c32bbebbc3a3d47bd6cbc053d503da3bd32bd5ebdef3be7bde43c5fbd873dd4bcacbd58bc98bd23bea53c98bc4f3dbbbc08bc053ee53cd7bd4c3d813c2abd653d163c383c263d09bcc2bc343d553d6abd5d3d593c893d773d1ebea8bdad3dc4bd33bd983c64bdc63d8fbc2bbccd3bb4bb72bc633d163d94bca63c+131072",
      weight_key: "0x020000006cbba1bc693db7bda9bd023e813c2a3da63c423cff3d763dcf3c353d7ebd653d953dca3c67bbff3d75bd2abc3abc8fbd41bc36be9bbb0ebb64bd86bb3abdbe3db7bd48bd66bd0ebd083d7abdb3bd0d3e0fbcc5bc8d3c963cdcbd8fbdb4bde93d0abd003e0f3d12bd913b6d3dbdbdd43df5bca9bc68bd95bd67bda43d593dc23d633da93c153a153e98bd2bbdbcbcc73d8b3d1cbd653df03d88bd983d113c933b3cbd313dd2bb0abd023d79bdc0ba8abd093d323ca7bdda3be13d4d3c033ec13db9bd393d5dbdac3d38bd7f3bf53c7dbc393be63c82bc79bdc53d663d543a223d703dad3d0c3d04be8f3d853ddf3df63bcf3c4dbc26bd35bde5bc8b3cc5bd923dbbbc97bd65bce93b9fb9cc3df0bcb6bd7ebd25be23bd2abc603dfb3ceb3ca6bd99bd473d643d50bd9bbdad3c5cbb33be963b203d26bc143de13dba3cea3d09beecbb94bc493d8dbd0b3d683dedbd59bc613d8c3dc83c9ebd013eaabd79bc91bcdabcf93cb43c213d7f3c5a3d94bd5dbbe73aa7bdd83d3b3bffbcea3db23c10bc8c3cf53cef3d313d323ca23d0a3a813d603dc83cba3c353d69bd4a3d65bd4c3db23d2f3d9fbd92bd853d37bcf5b8953cb23cf4bb9bbd6cbde23c16bdd8bc02bd7f3d9e3deebc933d35bbc73d0ebe2d3d4dbd58bd66bb153c89bdd7bc2f3d933c163d0a3d2bbedabc8e3d8fbc8b3d97bd053d3abd3abd7bbc8a3c56bdaebd05bd+131072",
      weight_value: "0x02000000fd3ba93dfabc1abdbbbd41bd843c59bcf63bd63c8cbcbf3da43dce3df33c39bd673c003df13d1a3c0fbc683d023ec83bd53be73c04bd6b3caebc45bcb0bc093d97bca0bce5bd803cfa3cda3d933d1c3d2ebd98bda63c903da4bd43bd1c3ea0bdda3cbc3c8dbd34bce33cc0bd9d3d4e3c0abd683d33bb833d063ebdbdb13df63cbbbc853c183dbb3dcbbd5ebd1cbdfebc593d8b3ac2bd923c0ebdd2bc5b3cc83c83bcb93c743a96bd923dc1bd6cbce13c0e3d123dc5bc09be3ebd033daebd95ba17bda13bc13cc4bcc63d30be243cc9bd96bcbfbcafbd333d59bc3c3de2bde9bd91bd74bc18bcf53c45bd253d1e3d833c83bd8abc483c163d1d3dcabd763d643c45ba613d6bbde43c6d3dac3c75bd243d413ca3bc1b3d773dd63daa3d43bdf0bde5bdc63c0e3c323dadbd29bd5ebc3dbd08be08bb843df63c99baa73b273cedbd3d3d2abc113ae73dbabd803d5b3dac3d3fbc093ecc3cef3d2dbef23cf53c5cbdb83c5fbe6b3d91bdc23d7e3db63d38bd8c3b4c3c53bc2fbda9ba2fbdbbbc8a3cefbcbc3d1f3d5b3d323dd53c3f3d303d1dbb94bd19bc4d3d53bd7d3d8a3d893c26bd87bd9bbb79bd89bd28bd13bd2d3e9c3ccebc63bd9c3dc53c143d063c53be243cc2bd70bddb3d6c3d363b4b3c99bbed3d7dbd98bd6bbdc93db33c8b3dd1bbfabda7bdae3c15bd993d33ba83bda93d5dbb8fbd4c3d7bbd373d693dfdbb6e3d+131072",
      weight_out: "0x020000008d3d8fbd893db13d013dc03d393d3abb183dbd3ce5bd7f3c92bd17bc643d34bbc73d773dafbdef3d833d0abd4c3c3fbd7e3d813da03b04bc1cbd78bddf3a6bbbb73cda3c1abcbe3becbc303cbe3c37bc6b3d6b3dc13df1bc25bd4ebc65bd863dbd3c55bdefbc813b143e81bd1ebdb23d00bcfe3c4e3d9dbd593d453dd03d973d8f3dc3bc313da0bd1b3e40bd48bdee3cfabdaebc28bc19bdda3c03bc773bf2ba65bc9c3d83bcb23d91bc41bc9b3c953ca33defbb9c3d85bd0cb917be013d693d79bda9bc193bfbbc71bdbbbdcabc6ebd4fbdfe3de7bd713c9cbdfd3c52bcd8bc1ebd613d9a3db8bd9bbd883dae3d3a3d723b263df8bc0abeb8bb873d4a3dd93c83bd7b3ce1bbaf3d453d1c3e15bee7bd83bc8f3d2f3d833db8bd113dce3c40be2abc91bd453d06bcdbbd8bbdf13b0bbecebb65bde8bd603d43bb243d563daabdef3a41bd40bc363c023d94ba51bb17bd233d8f3c3bbd623bdd3dc6bdd73cbe3d883d62bc753b373ccf3ca5bd1dbd9e3cafbd033d3b3d3f3d583dc63ab53d5bbd843c4cbc6738d8bc3bbd7f3d9fbd6cbccfbc063dea3ad8bc08bea6bde3bda7bde63ccc3b6cbda13d76bd9b3bf53df73d75bde13cc8bbf53df3bc01bdeebc08bd68bcb03b9cbda13d503dd73d913cf63d073a85ba14bd8b3d813d453ce8bc453c15bd26bd18bd153dadbd443cb83ababb87bc563c933c293dc2bcf13d863dbc3d+131072",
      weight_up: "0x02000000f1bd9abdc9bc32bc72bcc1bdeabb39bc7c3d07be5bbd27bee9bcbbbc69bc4cbd203d71bd0ebd3fbc8bbd1abdf33d0fbd413dc13cc6bdb7bd9dbc4a3d883d62bd5ebd0f3d0c3e553d273d2fbd2c3d06bdacbd6abd81bcbabd8e3d4c3c69bdd53d1fbdff3df5bca23dd7bdbe3ca43cd1bdbd3cd0bd7ebdbdbc9fbd783bd13d1d3d6dbde23c9f3b8b3b1e3d9abcc53b113cd43d83bc413d9cbd143e3d3dfdbc153d7f3d513df03cb1bdacbc023e723d1bbb723dd4bd6dbd9ebdbf3cab3d5cbcc4bdaebdc33d033d093bcdbda33d8abce7bc71bd0d3df03db83dde3c35bd31bd033d56bdd5bc843aa2bd3e3d4abc3bbdc23dbf3c033cfd3d02bdf33b36bdc3bd6e3dc83ca73b853d8fbc2bbd13bb0fbde63bacbc79bd32bd11bcc73b993d5abc413d223d143edb3c0bbe1fbda9bd7c3d03bd6cbcffbd8c3b5dbdcc3da03c233de03dbbbcd2bd183b483d7dbdd13d023c2a3d293d8abddabc80bdacbd59bd423d43bd81bdde3b1cbd2f3d913de4bbe7bd71bca33d993c9b3dabbbef3cd33cc13b883c91bd053eb83d9abd85bdd6bb083e603d39bc513de73b02be693b0f3cf63db83dc83dedbce93c62bd5dbc94bdad3dbcbcc0bdabbc1c3ad1bd76bb023dbd3d87bda8bd11bc453d523d943ca2bd803db7bc873d5fbdb13dce3d533c60bd78bd103d1a3dce3c5b3c6ebdfc3d19bdaabd133dcdbd163de73d0b3dabbcc53c8d3d38bd+524288",
      weight_down: "0x02000000313ca2bcb5bb6c3d85bdb0bcea3afb3c693d9a3c07bd9a3d463d433c79bdea3c0ebd6ebd00bdfe3ca2bc2b3dc8bb833b7abdad3c253bef3bde3bcabced3c723ce6bcfdbbc83b75bac9bcb43c01bdf5bce2bc1dbdb3bd5b3df4bb9fbc1e3c15bc943d4fbdfd3cc53cea3cf73c7c3d9abc4fbcd5bb9cbc893d523d183adfbc523cf0bcd73c3abc2d3d013d023cee3af53c5c3bcebb88bc4bbd253c3cbb1ebb433db93c0f3cd13a22bdb1bc563caa3c3cbc1cbc053d1bbd2bbd1fbdb63c24bd8ebc533c0cbcd2bc98bcd13c0f3dd1baa93c29bd54bd7e3d1f3cc73bceb9d7bcc13c98bd1b3d443b0ebc7a3cbb3c59bb763d37bd19bd1b3d2dbd153d6a3c9e3c333d903ccdbca73b27bd96baddbb933cafba3ebdabbbadbc423d2bbd98bd48bc95bbc5bcb23c7e3c2ebb3ebca23b18bd89bdacbb213cabbb3dbc1bbb943ccd3c2c3c133db53ce4bb9bbc5a3da6bc09bc94bdb7bd893c85bcc5bc6abb8ebd75bce9bcba3c8cbc813c8fbda63cbebc8b3c843cf4ba2fbb1cbb303dbf3c4d3bb33cd43b09bc883b06bc5c3dee3cf0bcadbc17bd95bc03bc26bc92bc35bca2bc5fbb1ebb47bcd83ac13cab3d8a3c1d3d0abb823a00bdacba1a3cd73b2f3db63c9e3d8f3d233c833c3a3c0ebcdabc903c023966bca53b73bd79bbf3bc93bcd33c6f3ddd3c293c843c8bbce8bcdabb8abb8a3d77bb2b3d753db8bcb63be73c21bc19bc363d+524288",
      norm0: "0x04000000a3ac833f45df663f4c175b3f54b38b3f6cfb703f20ca403fbf50653f960d3e3fa3428d3f1d5b433f287f813f966f5f3f3e58883f7162823f8488963f72cc633f7fed743ffca3533fb1c98a3f2c319b3f5faa8a3f3a15583f4c9e743f740a803f76aa873fca796b3f0c9a993f1e34923f533a943f7482703fb8cf833f7d927c3ff963623f6750893f48eb763f36f1843f8860593f5489833f42d2653fde0e873ff689693f28e8833fac54a23fb4d68c3f04796d3f0b9c7c3f9566a43f9fba773fba32a23f40e38f3f42b6893f8eda873fb87b8e3f09827a3fde82983f6412823f88eb703fe8f59e3f58063f3f367d6d3f21be803f76f0703fbaca703fa2d99a3fadc29b3fc028783f0fa3393fa17f8a3fe8a74c3f1447843f83a4823f0020533f0844833f4cb1803f3f45823f44917e3f25ad8f3f586d883fce3e493f04ef653f5e32503f2c09313fb346973f1e45933f12b47b3f1267803f2eff813f423a8c3f1d996e3fe576883f0e3b9a3f8884b03f8e32893f932c793ff6488c3f9085663fc21a773f7926833f35db7f3f8a23893f5f76643ff78a8d3f0ab0713fd88f883f4dab5f3f4292a33fe962653f211d853ffa16863f794f773f1d36693f9e7e8a3fa5bd953f50f0733f4f8e9e3fcb7f7d3f25799d3f49fd8d3f671b883fa430583f4cae943f6853723f554a5b3f08fb863fa8fb8f3f12468c3f3f5f8a3f75e4813f+1024",
      shift0: "0x04000000e3c4223dd072c93b7713523e7fd39fbc6ac14bbb3bea853e695f2c3d2aa296bed2d045beef31083d9e9d73bd448b06be77009f3db7b267be1aaa83bd86c43d3d98fd98bef91dd73c50834e3e4538a4bc7fd5493e75abca3d5501abbdb4e4873e9388cb3df4899f3d29fd2abc52eca93dc635e03d8204c63df21f4a3dd080a23e003be03d7327d83c403a99bc848e56bd50d542bd7da4a63c0841cebd315a08bdd3431e3e233b54bd9395b43dd62cf4bd370e0c3d879ab1bd6770b8bdf19fc23d9aa1e9bd34ad3e3d3bf2a1bdc2bd6dbd6d377ebdd1e323beb761223b8b9dc93d75b6bbbd1bac623ef86d143e20c3253ee860b23b5eea3f3efc4b3dbe47edd0bc1bce13bd8dfe513ed48a223dd31029bc944119bd0f0ff0bbcc4c073debb37f3d0703353d1e112bbd833194bed01b6fbc98db013cde4c7f3e7d85263e57ddac3dfcf5873d5e5f703d932c2ebe8fb51f3e13f943bd744d15be3b666a3efa8dffbc223c343d3e20e2bd5ce42c3e148fc2bd3746ed3b228ad93d5c2e6d3de1da563da56b093ec3512c3ed94d093d99168f3df0a2fc3d814f1bbeb0c6433e4e4e9d3ec9ff56bdf54333be64d4d9bd0518e1bdbee3133e955268be46c88abddd6a163ed41849be82b2f33d25b8f2bd31dbb33db459d3bd0f90dc3d6a935abe9aa53dbd3d6826bd7fcfb43d94200dbe2a0d0d3edd731ebe2fb1133e9bddcbbc5a20dbbc+1024",
      norm1: "0x040000001ed1703f2356703fe5fe7c3fcf41683ff5517f3f89787a3f3bce873faf01553f4c28643fd8cd4b3ff627853f96615f3ff68f473fa972833f5776723f27da7f3fba6d8c3fbeafad3f1a238f3fe3d2873f879b803f0d4c713f2637643fbf3e963ffa15373f2c545a3fee6e633f09ae7c3f9a055f3fc05f943fa4348c3fb762923f3f3a8a3f61e1833f00e9623fd152763feab3973f661a863fa7719c3f96ca973ff5bd7c3fb3146d3feb7e833f3965903fa6da7d3f1dd0663f42b0743f2dc4683fb65b8f3f6bca943f4126693f68ed473f3eae753f2354993fa5d69a3fb809633f7f776c3fb0df743f6711a43f8ac4923fffe2773f10ac8f3fc5ac6e3ff9f5823f9dfb7c3f627f703f71ad8b3fe751933f4075903f7baa823f0398863f0c04a43fe22e623f6db3823feea5983f60c77f3f68ec723f5942833f51f36f3f7c195f3f9f3b803f80ef683f90ed5f3f6dce893fd4974a3f67728f3f90ba6d3fc921893f3863913f706a323ff76d7f3f86094b3f93ff783fb3126c3ff6906a3f2cce803fda778a3ff1aa763ff7ef863fe987833f1e04963ff489833faf36483fa3a87a3f1be2653fc0a3943f14b2783f52fa703ff87b683f309f313faacb803f9d947c3f0c38663fce506f3fcf8b823fc9c4823fcfea433f56c36a3f1b4d743fa7ad583faccd883f83c9833fa090573f14517d3f2aef763fc16b5f3f8ec3913f9f26833f+1024",
      shift1: "0x040000003bb398bb70710b3eed52f23dc951a7bdfc6e7d3d4dd285bdf10fc93c396b913c5ec21c3e52ed913d55477d3dd10b85bd42f364befaaa2bbba60b113dda70f13ce11bfd3d94746ebc6a64e9bc4076a2bb39748ebd7cbf863d12f2d6bd483edfbc5bf82bbe75d08dbe6bcdc9bddf79113e7ba50b3e2758e7bc78ff803da3a6e6bd1970873d8b0ec9bd79c992bdde611fbc8d8a033de4b4983d28382a3ec350e2bd5df7aabd071798bc58c786bc1796cb3d7f06cdbc6e9ef33d706cd8bd131ae1bd9d04e13c9f40583daa5e4a3d8e9c143e0323853d10fc663c0e9ca4bd249be5bd098ca73dd4e0a53d8ee8c2bd71b75bbe1a4a153eabb3de3c9002c73d9608dfbd50eeeebbed2988bb54ffd93c600e1cbec92a17be2e055dbe626d34beaf170d3efcea373ee6649a3de29e183ef9afde3d1ab85cbec466f0bdc5b2ddbdf6ffc3bd724b0b3ee0ff75be2b158e3de1accabde5e2103e0a40653d964684bef0168cbed232fcbc298863bd7300573d14593abe84112fbd917ea03c4735e9bba7fb453d141a7e3d1f38303ee95036beaa97b03da9033a3d1ae037bcc58e683eeb8a43bea5881bbec614b4bd88670b3ed559dfbd09e484be56c9853da7891c3ef1ddec3db9ef35be1c07ac3d37d64ebc0af5e7bcc8ab573dec8fa7bc171502bdf60029bd60da1cbd76c049be302d953d3c47aabdb6e6323ea12bdb3d777dd33cb6ab233d+1024"
    }
  }
#-}
