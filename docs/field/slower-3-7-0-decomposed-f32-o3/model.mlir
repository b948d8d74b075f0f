module {
  func.func @main(%query: tensor<8x256x64xf32>, %key: tensor<8x256x64xf32>, %value: tensor<8x256x64xf32>) -> tensor<8x256x64xf32> {
    %zero = arith.constant 0.0 : f32
    %result_scale = arith.constant 0.125 : f32
    %result_earlier = arith.constant 0 : index
    %result_seen = arith.constant 0.0 : f32
    %result_hidden = arith.constant 0xFF800000 : f32
    %result_mask_to = tensor.empty() : tensor<8x256x256xf32>
    %result_mask = linalg.generic {
      indexing_maps = [affine_map<(h, q, k) -> (h, q, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]
    } outs(%result_mask_to : tensor<8x256x256xf32>) {
    ^bb0(%out: f32):
      %row = linalg.index 1 : index
      %at = linalg.index 2 : index
      %last = arith.addi %row, %result_earlier : index
      %sees = arith.cmpi sle, %at, %last : index
      %r = arith.select %sees, %result_seen, %result_hidden : f32
      linalg.yield %r : f32
    } -> tensor<8x256x256xf32>
    %result_turned_to = tensor.empty() : tensor<8x64x256xf32>
    %result_turned = linalg.transpose ins(%key : tensor<8x256x64xf32>) outs(%result_turned_to : tensor<8x64x256xf32>) permutation = [0, 2, 1]
    %result_products_start_empty = tensor.empty() : tensor<8x256x256xf32>
    %result_products_start = linalg.fill ins(%zero : f32) outs(%result_products_start_empty : tensor<8x256x256xf32>) -> tensor<8x256x256xf32>
    %result_products = linalg.batch_matmul ins(%query, %result_turned : tensor<8x256x64xf32>, tensor<8x64x256xf32>) outs(%result_products_start : tensor<8x256x256xf32>) -> tensor<8x256x256xf32>
    %result_scores_to = tensor.empty() : tensor<8x256x256xf32>
    %result_scores = linalg.generic {
      indexing_maps = [affine_map<(h, q, k) -> (h, q, k)>, affine_map<(h, q, k) -> (h, q, k)>, affine_map<(h, q, k) -> (h, q, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]
    } ins(%result_products, %result_mask : tensor<8x256x256xf32>, tensor<8x256x256xf32>) outs(%result_scores_to : tensor<8x256x256xf32>) {
    ^bb0(%in0: f32, %in1: f32, %out: f32):
      %scaled = arith.mulf %in0, %result_scale : f32
      %r = arith.addf %scaled, %in1 : f32
      linalg.yield %r : f32
    } -> tensor<8x256x256xf32>
    %result_weights_to = tensor.empty() : tensor<8x256x256xf32>
    %result_weights = linalg.softmax dimension(2) ins(%result_scores : tensor<8x256x256xf32>) outs(%result_weights_to : tensor<8x256x256xf32>) -> tensor<8x256x256xf32>
    %result_start_empty = tensor.empty() : tensor<8x256x64xf32>
    %result_start = linalg.fill ins(%zero : f32) outs(%result_start_empty : tensor<8x256x64xf32>) -> tensor<8x256x64xf32>
    %result = linalg.batch_matmul ins(%result_weights, %value : tensor<8x256x256xf32>, tensor<8x256x64xf32>) outs(%result_start : tensor<8x256x64xf32>) -> tensor<8x256x64xf32>
    return %result : tensor<8x256x64xf32>
  }
}