module {
  func.func @main(%x: tensor<256x256xf32>, %right: tensor<256x512xf32>) -> tensor<256x512xf32> {
    %zero = arith.constant 0.0 : f32
    %weights_to = tensor.empty() : tensor<256x256xf32>
    %weights = linalg.softmax dimension(1) ins(%x : tensor<256x256xf32>) outs(%weights_to : tensor<256x256xf32>) -> tensor<256x256xf32>
    %product_start_empty = tensor.empty() : tensor<256x512xf32>
    %product_start = linalg.fill ins(%zero : f32) outs(%product_start_empty : tensor<256x512xf32>) -> tensor<256x512xf32>
    %product = linalg.matmul ins(%weights, %right : tensor<256x256xf32>, tensor<256x512xf32>) outs(%product_start : tensor<256x512xf32>) -> tensor<256x512xf32>
    %result_half = arith.constant 0.5 : f32
    %result_one = arith.constant 1.0 : f32
    %result_root = arith.constant 0.70710678118654752 : f32
    %result_to = tensor.empty() : tensor<256x512xf32>
    %result = linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%product : tensor<256x512xf32>) outs(%result_to : tensor<256x512xf32>) {
    ^bb0(%in0: f32, %out: f32):
      %scaled = arith.mulf %in0, %result_root : f32
      %erf = math.erf %scaled : f32
      %above = arith.addf %erf, %result_one : f32
      %half = arith.mulf %in0, %result_half : f32
      %r = arith.mulf %half, %above : f32
      linalg.yield %r : f32
    } -> tensor<256x512xf32>
    return %result : tensor<256x512xf32>
  }
}