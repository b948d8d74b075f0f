module {
  func.func @main(%x: tensor<1024x1024xf32>, %weight: tensor<1024xf32>, %bias: tensor<1024xf32>) -> tensor<1024x1024xf32> {
    %zero = arith.constant 0.0 : f32
    %result_count = arith.constant 1024.0 : f32
    %result_epsilon = arith.constant 1.0e-5 : f32
    %result_sum_to_empty = tensor.empty() : tensor<1024xf32>
    %result_sum_to = linalg.fill ins(%zero : f32) outs(%result_sum_to_empty : tensor<1024xf32>) -> tensor<1024xf32>
    %result_sum = linalg.generic {
      indexing_maps = [affine_map<(s, d) -> (s, d)>, affine_map<(s, d) -> (s)>],
      iterator_types = ["parallel", "reduction"]
    } ins(%x : tensor<1024x1024xf32>) outs(%result_sum_to : tensor<1024xf32>) {
    ^bb0(%in0: f32, %out: f32):
      %r = arith.addf %out, %in0 : f32
      linalg.yield %r : f32
    } -> tensor<1024xf32>
    %result_centred_to = tensor.empty() : tensor<1024x1024xf32>
    %result_centred = linalg.generic {
      indexing_maps = [affine_map<(s, d) -> (s, d)>, affine_map<(s, d) -> (s)>, affine_map<(s, d) -> (s, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%x, %result_sum : tensor<1024x1024xf32>, tensor<1024xf32>) outs(%result_centred_to : tensor<1024x1024xf32>) {
    ^bb0(%in0: f32, %in1: f32, %out: f32):
      %mean = arith.divf %in1, %result_count : f32
      %r = arith.subf %in0, %mean : f32
      linalg.yield %r : f32
    } -> tensor<1024x1024xf32>
    %result_squares_to_empty = tensor.empty() : tensor<1024xf32>
    %result_squares_to = linalg.fill ins(%zero : f32) outs(%result_squares_to_empty : tensor<1024xf32>) -> tensor<1024xf32>
    %result_squares = linalg.generic {
      indexing_maps = [affine_map<(s, d) -> (s, d)>, affine_map<(s, d) -> (s)>],
      iterator_types = ["parallel", "reduction"]
    } ins(%result_centred : tensor<1024x1024xf32>) outs(%result_squares_to : tensor<1024xf32>) {
    ^bb0(%in0: f32, %out: f32):
      %square = arith.mulf %in0, %in0 : f32
      %r = arith.addf %out, %square : f32
      linalg.yield %r : f32
    } -> tensor<1024xf32>
    %result_to = tensor.empty() : tensor<1024x1024xf32>
    %result = linalg.generic {
      indexing_maps = [affine_map<(s, d) -> (s, d)>, affine_map<(s, d) -> (s)>, affine_map<(s, d) -> (d)>, affine_map<(s, d) -> (d)>, affine_map<(s, d) -> (s, d)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%result_centred, %result_squares, %weight, %bias : tensor<1024x1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) outs(%result_to : tensor<1024x1024xf32>) {
    ^bb0(%in0: f32, %in1: f32, %in2: f32, %in3: f32, %out: f32):
      %mean = arith.divf %in1, %result_count : f32
      %above = arith.addf %mean, %result_epsilon : f32
      %inverse = math.rsqrt %above : f32
      %scaled = arith.mulf %in0, %inverse : f32
      %r0 = arith.mulf %scaled, %in2 : f32
      %r = arith.addf %r0, %in3 : f32
      linalg.yield %r : f32
    } -> tensor<1024x1024xf32>
    return %result : tensor<1024x1024xf32>
  }
}