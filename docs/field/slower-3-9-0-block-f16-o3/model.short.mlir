

module {
  func.func @main(%x: tensor<256x256xf16>) -> tensor<256x256xf16> {
    %zero = arith.constant 0.0 : f32
    %weight_query = arith.constant dense_resource<weight_query> : tensor<256x256xf16>
    %weight_key = arith.constant dense_resource<weight_key> : tensor<256x256xf16>
    %weight_value = arith.constant dense_resource<weight_value> : tensor<256x256xf16>
    %weight_out = arith.constant dense_resource<weight_out> : tensor<256x256xf16>
    %weight_up = arith.constant dense_resource<weight_up> : tensor<256x1024xf16>
    %weight_down = arith.constant dense_resource<weight_down> : tensor<1024x256xf16>
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
    } ins(%x : tensor<256x256xf16>) outs(%x_wide_to : tensor<256x256xf32>) {
    ^bb0(%in0: f16, %out: f32):
      %r = arith.extf %in0 : f16 to f32
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
    %before_to = tensor.empty() : tensor<256x256xf16>
    %before = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%before_exact : tensor<256x256xf32>) outs(%before_to : tensor<256x256xf16>) {
    ^bb0(%in0: f32, %out: f16):
      %r = arith.truncf %in0 : f32 to f16
      linalg.yield %r : f16
    } -> tensor<256x256xf16>
    %query_flat_start_empty = tensor.empty() : tensor<256x256xf32>
    %query_flat_start = linalg.fill ins(%zero : f32) outs(%query_flat_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %query_flat_exact = linalg.matmul ins(%before, %weight_query : tensor<256x256xf16>, tensor<256x256xf16>) outs(%query_flat_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %query_flat_to = tensor.empty() : tensor<256x256xf16>
    %query_flat = linalg.generic {
      indexing_maps = [affine_map<(q, c) -> (q, c)>, affine_map<(q, c) -> (q, c)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%query_flat_exact : tensor<256x256xf32>) outs(%query_flat_to : tensor<256x256xf16>) {
    ^bb0(%in0: f32, %out: f16):
      %r = arith.truncf %in0 : f32 to f16
      linalg.yield %r : f16
    } -> tensor<256x256xf16>
    %query_split = tensor.expand_shape %query_flat [[0], [1, 2]] output_shape [256, 4, 64] : tensor<256x256xf16> into tensor<256x4x64xf16>
    %query_to = tensor.empty() : tensor<4x256x64xf16>
    %query = linalg.transpose ins(%query_split : tensor<256x4x64xf16>) outs(%query_to : tensor<4x256x64xf16>) permutation = [1, 0, 2]
    %key_flat_start_empty = tensor.empty() : tensor<256x256xf32>
    %key_flat_start = linalg.fill ins(%zero : f32) outs(%key_flat_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %key_flat_exact = linalg.matmul ins(%before, %weight_key : tensor<256x256xf16>, tensor<256x256xf16>) outs(%key_flat_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %key_flat_to = tensor.empty() : tensor<256x256xf16>
    %key_flat = linalg.generic {
      indexing_maps = [affine_map<(q, c) -> (q, c)>, affine_map<(q, c) -> (q, c)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%key_flat_exact : tensor<256x256xf32>) outs(%key_flat_to : tensor<256x256xf16>) {
    ^bb0(%in0: f32, %out: f16):
      %r = arith.truncf %in0 : f32 to f16
      linalg.yield %r : f16
    } -> tensor<256x256xf16>
    %key_split = tensor.expand_shape %key_flat [[0], [1, 2]] output_shape [256, 4, 64] : tensor<256x256xf16> into tensor<256x4x64xf16>
    %key_to = tensor.empty() : tensor<4x256x64xf16>
    %key = linalg.transpose ins(%key_split : tensor<256x4x64xf16>) outs(%key_to : tensor<4x256x64xf16>) permutation = [1, 0, 2]
    %value_flat_start_empty = tensor.empty() : tensor<256x256xf32>
    %value_flat_start = linalg.fill ins(%zero : f32) outs(%value_flat_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %value_flat_exact = linalg.matmul ins(%before, %weight_value : tensor<256x256xf16>, tensor<256x256xf16>) outs(%value_flat_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %value_flat_to = tensor.empty() : tensor<256x256xf16>
    %value_flat = linalg.generic {
      indexing_maps = [affine_map<(q, c) -> (q, c)>, affine_map<(q, c) -> (q, c)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%value_flat_exact : tensor<256x256xf32>) outs(%value_flat_to : tensor<256x256xf16>) {
    ^bb0(%in0: f32, %out: f16):
      %r = arith.truncf %in0 : f32 to f16
      linalg.yield %r : f16
    } -> tensor<256x256xf16>
    %value_split = tensor.expand_shape %value_flat [[0], [1, 2]] output_shape [256, 4, 64] : tensor<256x256xf16> into tensor<256x4x64xf16>
    %value_to = tensor.empty() : tensor<4x256x64xf16>
    %value = linalg.transpose ins(%value_split : tensor<256x4x64xf16>) outs(%value_to : tensor<4x256x64xf16>) permutation = [1, 0, 2]
    %attended_scale = arith.constant 0.125 : f32
    %attended_earlier = arith.constant 0 : index
    %attended_seen = arith.constant 0.0 : f16
    %attended_hidden = arith.constant 0xFC00 : f16
    %attended_mask_to = tensor.empty() : tensor<4x256x256xf16>
    %attended_mask = linalg.generic {
      indexing_maps = [affine_map<(h, q, k) -> (h, q, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]
    } outs(%attended_mask_to : tensor<4x256x256xf16>) {
    ^bb0(%out: f16):
      %row = linalg.index 1 : index
      %at = linalg.index 2 : index
      %last = arith.addi %row, %attended_earlier : index
      %sees = arith.cmpi sle, %at, %last : index
      %r = arith.select %sees, %attended_seen, %attended_hidden : f16
      linalg.yield %r : f16
    } -> tensor<4x256x256xf16>
    %attended_to = tensor.empty() : tensor<4x256x64xf16>
    %attended = "iree_linalg_ext.attention"(%query, %key, %value, %attended_scale, %attended_mask, %attended_to) <{
      indexing_maps = [affine_map<(h, q, e, d, k) -> (h, q, d)>, affine_map<(h, q, e, d, k) -> (h, k, d)>, affine_map<(h, q, e, d, k) -> (h, k, e)>, affine_map<(h, q, e, d, k) -> ()>, affine_map<(h, q, e, d, k) -> (h, q, k)>, affine_map<(h, q, e, d, k) -> (h, q, e)>],
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>
    }> ({
    ^bb0(%score: f32):
      "iree_linalg_ext.yield"(%score) : (f32) -> ()
    }) : (tensor<4x256x64xf16>, tensor<4x256x64xf16>, tensor<4x256x64xf16>, f32, tensor<4x256x256xf16>, tensor<4x256x64xf16>) -> tensor<4x256x64xf16>
    %joined_to = tensor.empty() : tensor<256x4x64xf16>
    %joined = linalg.transpose ins(%attended : tensor<4x256x64xf16>) outs(%joined_to : tensor<256x4x64xf16>) permutation = [1, 0, 2]
    %context = tensor.collapse_shape %joined [[0], [1, 2]] : tensor<256x4x64xf16> into tensor<256x256xf16>
    %projected_start_empty = tensor.empty() : tensor<256x256xf32>
    %projected_start = linalg.fill ins(%zero : f32) outs(%projected_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %projected_exact = linalg.matmul ins(%context, %weight_out : tensor<256x256xf16>, tensor<256x256xf16>) outs(%projected_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %projected_to = tensor.empty() : tensor<256x256xf16>
    %projected = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%projected_exact : tensor<256x256xf32>) outs(%projected_to : tensor<256x256xf16>) {
    ^bb0(%in0: f32, %out: f16):
      %r = arith.truncf %in0 : f32 to f16
      linalg.yield %r : f16
    } -> tensor<256x256xf16>
    %y_to = tensor.empty() : tensor<256x256xf16>
    %y = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%x, %projected : tensor<256x256xf16>, tensor<256x256xf16>) outs(%y_to : tensor<256x256xf16>) {
    ^bb0(%in0: f16, %in1: f16, %out: f16):
      %r = arith.addf %in0, %in1 : f16
      linalg.yield %r : f16
    } -> tensor<256x256xf16>
    %between_count = arith.constant 256.0 : f32
    %between_epsilon = arith.constant 1.0e-5 : f32
    %y_wide_to = tensor.empty() : tensor<256x256xf32>
    %y_wide = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%y : tensor<256x256xf16>) outs(%y_wide_to : tensor<256x256xf32>) {
    ^bb0(%in0: f16, %out: f32):
      %r = arith.extf %in0 : f16 to f32
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
    %between_to = tensor.empty() : tensor<256x256xf16>
    %between = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%between_exact : tensor<256x256xf32>) outs(%between_to : tensor<256x256xf16>) {
    ^bb0(%in0: f32, %out: f16):
      %r = arith.truncf %in0 : f32 to f16
      linalg.yield %r : f16
    } -> tensor<256x256xf16>
    %up_start_empty = tensor.empty() : tensor<256x1024xf32>
    %up_start = linalg.fill ins(%zero : f32) outs(%up_start_empty : tensor<256x1024xf32>) -> tensor<256x1024xf32>
    %up_exact = linalg.matmul ins(%between, %weight_up : tensor<256x256xf16>, tensor<256x1024xf16>) outs(%up_start : tensor<256x1024xf32>) -> tensor<256x1024xf32>
    %up_to = tensor.empty() : tensor<256x1024xf16>
    %up = linalg.generic {
      indexing_maps = [affine_map<(q, f) -> (q, f)>, affine_map<(q, f) -> (q, f)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%up_exact : tensor<256x1024xf32>) outs(%up_to : tensor<256x1024xf16>) {
    ^bb0(%in0: f32, %out: f16):
      %r = arith.truncf %in0 : f32 to f16
      linalg.yield %r : f16
    } -> tensor<256x1024xf16>
    %active_half = arith.constant 0.5 : f32
    %active_one = arith.constant 1.0 : f32
    %active_root = arith.constant 0.70710678118654752 : f32
    %up_wide_to = tensor.empty() : tensor<256x1024xf32>
    %up_wide = linalg.generic {
      indexing_maps = [affine_map<(q, f) -> (q, f)>, affine_map<(q, f) -> (q, f)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%up : tensor<256x1024xf16>) outs(%up_wide_to : tensor<256x1024xf32>) {
    ^bb0(%in0: f16, %out: f32):
      %r = arith.extf %in0 : f16 to f32
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
    %active_to = tensor.empty() : tensor<256x1024xf16>
    %active = linalg.generic {
      indexing_maps = [affine_map<(q, f) -> (q, f)>, affine_map<(q, f) -> (q, f)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%active_exact : tensor<256x1024xf32>) outs(%active_to : tensor<256x1024xf16>) {
    ^bb0(%in0: f32, %out: f16):
      %r = arith.truncf %in0 : f32 to f16
      linalg.yield %r : f16
    } -> tensor<256x1024xf16>
    %down_start_empty = tensor.empty() : tensor<256x256xf32>
    %down_start = linalg.fill ins(%zero : f32) outs(%down_start_empty : tensor<256x256xf32>) -> tensor<256x256xf32>
    %down_exact = linalg.matmul ins(%active, %weight_down : tensor<256x1024xf16>, tensor<1024x256xf16>) outs(%down_start : tensor<256x256xf32>) -> tensor<256x256xf32>
    %down_to = tensor.empty() : tensor<256x256xf16>
    %down = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%down_exact : tensor<256x256xf32>) outs(%down_to : tensor<256x256xf16>) {
    ^bb0(%in0: f32, %out: f16):
      %r = arith.truncf %in0 : f32 to f16
      linalg.yield %r : f16
    } -> tensor<256x256xf16>
    %result_to = tensor.empty() : tensor<256x256xf16>
    %result = linalg.generic {
      indexing_maps = [affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>, affine_map<(q, d) -> (q, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%y, %down : tensor<256x256xf16>, tensor<256x256xf16>) outs(%result_to : tensor<256x256xf16>) {
    ^bb0(%in0: f16, %in1: f16, %out: f16):
      %r = arith.addf %in0, %in1 : f16
      linalg.yield %r : f16
    } -> tensor<256x256xf16>
    return %result : tensor<256x256xf16>
  }
}
{-#
  dialect_resources: {
    builtin: {
      weight_query: "0x02000000eb2eb7ad1c2c872fcf1cad2648af192f4c2765a8032caca78da397aa5e28bf27bc280821521ff796012bc029012e652b8dab8b25ada3bf2d7ea031a4981f1e244b28faa7cda981ac16253fadf7a6151be0297f9c5725da2910ac742075b0dcb1982df9a2d0abf9a010ad43af13a75a2872a3e81d102b6da6e4265b291821a6a7f02973aa152c8f2a352de82d3caf282b7b1976ae922843b080a8e91f231d1b264fa99bac09ac51a293abbda922a13fa75dae05aaee29e82983a7c32d572cc8a089a6a6280e2d39205723922a49ac5dadf9a3c22b4b2f6aa5e1262b2941a27ba45fae7c298dab7badec2a00a871a808ac059d042b348e852dfd2e3ea50daa58a906abdda469a6b12da92cd32d292f8bb0242d762c15a4b71b39a935a91bacc5aed12bd628a4aa9c2c2f98872ca5b018a7532c95b0c7a9dba87d2f659f242ee62288a51b2bccad2eb00f2869aed6ac6f28c71af32a34ac77ab31a729a0e0250e2980281e17bc2d162e4128c32a9da615ac851093ae6426562e86aa7bae00a130aac9a8ab285125929956a7d2293aaa62a327287f2a18ad91a9f3aa791f35af1f27f8aa3c2c9da65fadbea2bdac14b12a25c2a4782adaa540a026302527b7ae5e2a082453a9252bb220c321312947a011a6a329aa2a4fabe92ac822472cbc2beeb040ad692d21ae95a9bc2423ab312e79a457a1641e9e9d8ea31a2bb028a4a43425+131072",
      weight_key: "0x020000005d9b06a5462bbaad4bad0e3007244e2931251022fb2fae2b7b26a429eeab292ba82c4d263c9bf72fa6ab4da1cda178ac08a2acb1d89c709822ab309cd0a9f42db6ad44aa33ab6ea84028cfab94ad673079a026a66624b324e0ae79aca2ad492f4da8003077288fa8851c672be6ad9f2ea5a747a53caba9ac37ab1d2dc82a122e172b4725ab10ab30c4ac54a9dea5362e5c2ce2a82a2b7d2f43acc12c8920981ce1a989298f9e50a81328caabff954dac46288d2134adcd1e082f65221a30062ec8adc429ebaa5e2dbca9fb1ba527e9a3ca1931270ca4c8ab272e2f2ba1120f297c2b6b2d612823b0782c262cf52eb21f782668a22da9aca925a7572425ae8f2cd4a5b9ac28a3441ff58c5e2e7fa7acadf3ab26b115a94ca1ff2ad42754272eadc5ac392a242b7caadbac6425dd9a97b1af1c002931a1a228092fcc254d2f45b05f9fa1a44a2a6aac58283f2b6bafc6a20a2b632c4226eeac083051adcba385a4d2a6cc279f250c29fa23ce2aa1acea9a3c1739adbe2ed919fca74f2f8d257fa05c24aa27752f84299421112d4f10082c012b3f26cf25aa2946ab522a2bab602a942d7629f6ac90ac272cbaa1a687a4248d259c9fdbac61ab1227b0a8bfa613a8f52bee2c72a7982cac993a2e70b06a2965aabdaa339baa2044acb8a67b299924ad28502859b1d1a66c2c77a4572cb6ac2928d3a9d0a9d5a35124b1aa70ad25a8+131072",
      weight_value: "0x02000000e81f492dd1a7cca8d8ad05aa1e24c7a2ae1fb2265ea4f62d212d712e9427c4a93b2303288a2fd12077a0402b0d30401ea71e362723a8562374a525a27da54628bca404a526af0224cd27cf2e992ce32870a9beac3125822c22ad15aae13000add026e12569aca4a1172701aee62c712251a83e2b9b991a2c3330eaad842db127d8a52a24bc28d92d58aef0aadea8eea7c52a591412ae8e2474a88fa6da223f2616a4c725a113afac942c06ae5ea30a277028942826a645b0f4a91b2872ada794b8a8081d0a261ea6302e7db123214baeada4f7a576ad9729c9a2e12912af45af8aaca3a3c1a0a52726aa2529ed2819241aac4ea44322af28e5284faeb22b23232492072b57ab1f276b2b6025aaab21290a2214a5db28b72bb42e4f2d18aa7caf27af2c266e208d2965ad45a9eea2e5a940b03d98212cb327ca943a1d3a2168afe52951a18410342fd3ad002cdc2a632df8a1493063267b2f66b19027a827e2aac325f6b25b2b85ac0e2ef02bb12dbea95e1c60229aa27aa949957ba9d5a5502476a7dd2dfa28db2a8d29a626f7298229ec989dacc5a06b2a95aae52b502c4a242da937acd79cc7ab4bac3da99ba86831dc246fa61aabdc2c2b269e28302097b2212110ae7dabda2e642bb2195a22c69c6b2fe6abbdac5aab472e9525592c849ed2af39ad7125a5a8cb2c9a9119ac462de59a78ac5d2ad9abb6294a2be89f702b+131072",
      weight_out: "0x020000006c2c7aac492c8b2d0a28022ec529ce99c028e92524aff52392acbba0232b9d993a2ebb2b79ad752f152c51a86422f7a9ed2b0a2c011d24a0dda8bdabf416559bb825d126cea0ec1d62a77d21ed25b5a1592b5b2b072e87a724a973a22bab2f2ce425a8aa7ba7061c9c3007acf2a88f2d02a0f027732ae8acc92a272a7c2eb82c7a2c16a6872903add53003aa43aa6d27d0af73a544a1c5a8d42616a0b91b919724a3dc2c15a4912d85a408a2d624a424192d789fe32c27ac5f88bbb007284c2bc4ab4ca5ca18d7a78babdcad51a66fab78aaef2f39af8823e2ace6278da2c1a6eda8042bcd2cbfadd5ac3d2c732dd229931b3029bfa74fb0be9d382c542ac52617acd923099f742d242ae030a9b03baf18a4762c7429182cc0ad8828722603b253a188ac272a30a0daae5cac8a1f56b06d9e25ab44affc2a1b9a2229ad2a4fad741708aa03a2b12113289f94859ab9a818297b24d7a9131be62e2caeb426f32d422c0ca3a41bb8217b2626adeba8f02475ad1528db29f829c32a3116a72dd6aa1d2460a29d03bca6d9a9f82bf6ac5ca379a632284d17bfa642b02ead19af3aad2c275e1e5eab082daeabdc1ca52fb92fa9ab06273d9ea62f9ba70aa873a73da83fa3801de2ac042d7f2aba2e8824ae2f39102694a3a8572c042c25223ea72a22a6a82da9c1a8aa2865ad1e22c315cf9d3aa4ac22962446290da68b2f2d2cde2d+131072",
      weight_up: "0x020000008bafd3ac4ca693a190a304ae529fcca1dc2b35b0d9aa38b144a7d5a549a364aafc2885ab6da8f7a158acd0a8952f78a8052a092634aebbade5a44d2a3d2c0fabefaa76285c30a52a3c297ba961292da862ad4dab04a4cfad722c602247aba92ef9a8f82fa8a7112db9aeee25242589aee92581aeefabeba5f4acbe1b852eec286bab0c27f61c561cf028cda4271e86209e2e17a40a2adcaca330e929e6a7ab28f72b882a832788ad61a51030932bdb988c2b9dae64abf0acf5255b2ddda21fae71ad152e1b28481869ae142d51a436a78aab6c287f2fbf2df126aaa989a91728aeaaaca6221410adf32950a2d7a9112efa251b20e42f0da8971fafa918ae732b3e263b1d292c7aa458a9979876a82f1f62a5c9ab90a989a0361ec82cd0a2052a13299e30db2658b0faa848ade02b1ca864a3fbaf5e1ce7aa632e02251929032fdca58daebd183e2ae9ab862e10204f2946294caccea602ac62adc5aa0f2a1baa08acee1ee3a87929892c1d9f35af8ca3192dc824d72c5b9d792797260a1e3d248bac2730bf2dd2ac29acad9e4230022bcca1862a371f13b0461b7920b22fbc2d402e67a74c2711abe6a2a1ac672ddca5fcad57a5e2108aaeb29b1028e92d3cac43ad89a0282a932a9c2410ad032cbaa53b2cf5aa872d742e9a22fdaabcab8328ce286d26d9226dabe32fc6a852ad992869aeae28382f572856a52c26692cc4a9+524288",
      weight_down: "0x0200000087210ea5a69d642b25ac7ea55017da27482bcf243aa8d32c332a1522c9ab522771a86dab02a8f1270ea556293f9e171cd0ab6a252919751ff21e51a66a278d2331a7e99f401ea69348a6a3250ca8a8a710a7e7a89aadd72a9d9ff9a4ee20a8a0a32c7aaae42725265427b527de2bd0a47aa2aa9ee1a4462c922abd10f9a68c2281a7b526cda16a2909280f207317aa27de1a729e3ea45aaa2721df99ef98182aca2579208a160ca986a5b0224e25dfa1e2a02928d7a85aa9f6a8b1251ca973a4992261a08ea6c4a48426742887964b254ba9a2aaf42bf520351e6d8eb5a60426c4acd7281c1a6fa0d123d925c99aae2bb7a9c8a8d6286aa9a4284d23f1249929802468a63c1d36a9b094eb9e94247c95f3a95a9d69a50e2a59a9c1ac3ea2a59c2ba68e25ed237299f2a1121dc4a84bac5e9d0921569de5a1da98a42467265d219628a925229fdba4cf2a31a54aa0a2acbcad47242ba425a64c9b70aca7a347a7ce255da40a247bac3325f3a555241d24a0977b99e2988329f725691a99259d1e48a0411c34a0e02a71277ea76aa5bba8a9a416a02da18fa4aba111a5f59af2983ba2c2160626552d5224e92851980f1402a85c95d020b61e7629ae25f42c762c19211924d12173a0cea67f240d0831a3281d99abc59b99a79aa49b26752beb264521212457a442a7ce9e519c4d2cba9b5529a82bc2a5b21d35270ca1c9a0b329+524288",
      norm0: "0x04000000a3ac833f45df663f4c175b3f54b38b3f6cfb703f20ca403fbf50653f960d3e3fa3428d3f1d5b433f287f813f966f5f3f3e58883f7162823f8488963f72cc633f7fed743ffca3533fb1c98a3f2c319b3f5faa8a3f3a15583f4c9e743f740a803f76aa873fca796b3f0c9a993f1e34923f533a943f7482703fb8cf833f7d927c3ff963623f6750893f48eb763f36f1843f8860593f5489833f42d2653fde0e873ff689693f28e8833fac54a23fb4d68c3f04796d3f0b9c7c3f9566a43f9fba773fba32a23f40e38f3f42b6893f8eda873fb87b8e3f09827a3fde82983f6412823f88eb703fe8f59e3f58063f3f367d6d3f21be803f76f0703fbaca703fa2d99a3fadc29b3fc028783f0fa3393fa17f8a3fe8a74c3f1447843f83a4823f0020533f0844833f4cb1803f3f45823f44917e3f25ad8f3f586d883fce3e493f04ef653f5e32503f2c09313fb346973f1e45933f12b47b3f1267803f2eff813f423a8c3f1d996e3fe576883f0e3b9a3f8884b03f8e32893f932c793ff6488c3f9085663fc21a773f7926833f35db7f3f8a23893f5f76643ff78a8d3f0ab0713fd88f883f4dab5f3f4292a33fe962653f211d853ffa16863f794f773f1d36693f9e7e8a3fa5bd953f50f0733f4f8e9e3fcb7f7d3f25799d3f49fd8d3f671b883fa430583f4cae943f6853723f554a5b3f08fb863fa8fb8f3f12468c3f3f5f8a3f75e4813f+1024",
      shift0: "0x04000000e3c4223dd072c93b7713523e7fd39fbc6ac14bbb3bea853e695f2c3d2aa296bed2d045beef31083d9e9d73bd448b06be77009f3db7b267be1aaa83bd86c43d3d98fd98bef91dd73c50834e3e4538a4bc7fd5493e75abca3d5501abbdb4e4873e9388cb3df4899f3d29fd2abc52eca93dc635e03d8204c63df21f4a3dd080a23e003be03d7327d83c403a99bc848e56bd50d542bd7da4a63c0841cebd315a08bdd3431e3e233b54bd9395b43dd62cf4bd370e0c3d879ab1bd6770b8bdf19fc23d9aa1e9bd34ad3e3d3bf2a1bdc2bd6dbd6d377ebdd1e323beb761223b8b9dc93d75b6bbbd1bac623ef86d143e20c3253ee860b23b5eea3f3efc4b3dbe47edd0bc1bce13bd8dfe513ed48a223dd31029bc944119bd0f0ff0bbcc4c073debb37f3d0703353d1e112bbd833194bed01b6fbc98db013cde4c7f3e7d85263e57ddac3dfcf5873d5e5f703d932c2ebe8fb51f3e13f943bd744d15be3b666a3efa8dffbc223c343d3e20e2bd5ce42c3e148fc2bd3746ed3b228ad93d5c2e6d3de1da563da56b093ec3512c3ed94d093d99168f3df0a2fc3d814f1bbeb0c6433e4e4e9d3ec9ff56bdf54333be64d4d9bd0518e1bdbee3133e955268be46c88abddd6a163ed41849be82b2f33d25b8f2bd31dbb33db459d3bd0f90dc3d6a935abe9aa53dbd3d6826bd7fcfb43d94200dbe2a0d0d3edd731ebe2fb1133e9bddcbbc5a20dbbc+1024",
      norm1: "0x040000001ed1703f2356703fe5fe7c3fcf41683ff5517f3f89787a3f3bce873faf01553f4c28643fd8cd4b3ff627853f96615f3ff68f473fa972833f5776723f27da7f3fba6d8c3fbeafad3f1a238f3fe3d2873f879b803f0d4c713f2637643fbf3e963ffa15373f2c545a3fee6e633f09ae7c3f9a055f3fc05f943fa4348c3fb762923f3f3a8a3f61e1833f00e9623fd152763feab3973f661a863fa7719c3f96ca973ff5bd7c3fb3146d3feb7e833f3965903fa6da7d3f1dd0663f42b0743f2dc4683fb65b8f3f6bca943f4126693f68ed473f3eae753f2354993fa5d69a3fb809633f7f776c3fb0df743f6711a43f8ac4923fffe2773f10ac8f3fc5ac6e3ff9f5823f9dfb7c3f627f703f71ad8b3fe751933f4075903f7baa823f0398863f0c04a43fe22e623f6db3823feea5983f60c77f3f68ec723f5942833f51f36f3f7c195f3f9f3b803f80ef683f90ed5f3f6dce893fd4974a3f67728f3f90ba6d3fc921893f3863913f706a323ff76d7f3f86094b3f93ff783fb3126c3ff6906a3f2cce803fda778a3ff1aa763ff7ef863fe987833f1e04963ff489833faf36483fa3a87a3f1be2653fc0a3943f14b2783f52fa703ff87b683f309f313faacb803f9d947c3f0c38663fce506f3fcf8b823fc9c4823fcfea433f56c36a3f1b4d743fa7ad583faccd883f83c9833fa090573f14517d3f2aef763fc16b5f3f8ec3913f9f26833f+1024",
      shift1: "0x040000003bb398bb70710b3eed52f23dc951a7bdfc6e7d3d4dd285bdf10fc93c396b913c5ec21c3e52ed913d55477d3dd10b85bd42f364befaaa2bbba60b113dda70f13ce11bfd3d94746ebc6a64e9bc4076a2bb39748ebd7cbf863d12f2d6bd483edfbc5bf82bbe75d08dbe6bcdc9bddf79113e7ba50b3e2758e7bc78ff803da3a6e6bd1970873d8b0ec9bd79c992bdde611fbc8d8a033de4b4983d28382a3ec350e2bd5df7aabd071798bc58c786bc1796cb3d7f06cdbc6e9ef33d706cd8bd131ae1bd9d04e13c9f40583daa5e4a3d8e9c143e0323853d10fc663c0e9ca4bd249be5bd098ca73dd4e0a53d8ee8c2bd71b75bbe1a4a153eabb3de3c9002c73d9608dfbd50eeeebbed2988bb54ffd93c600e1cbec92a17be2e055dbe626d34beaf170d3efcea373ee6649a3de29e183ef9afde3d1ab85cbec466f0bdc5b2ddbdf6ffc3bd724b0b3ee0ff75be2b158e3de1accabde5e2103e0a40653d964684bef0168cbed232fcbc298863bd7300573d14593abe84112fbd917ea03c4735e9bba7fb453d141a7e3d1f38303ee95036beaa97b03da9033a3d1ae037bcc58e683eeb8a43bea5881bbec614b4bd88670b3ed559dfbd09e484be56c9853da7891c3ef1ddec3db9ef35be1c07ac3d37d64ebc0af5e7bcc8ab573dec8fa7bc171502bdf60029bd60da1cbd76c049be302d953d3c47aabdb6e6323ea12bdb3d777dd33cb6ab233d+1024"
    }
  }
#-}
