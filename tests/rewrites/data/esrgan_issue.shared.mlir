// esrgan_issue.mlir once its concatenations share one padded buffer: %inserted_slice is the buffer with x in it.
#map = affine_map<(d0, d1, d2, d3) -> (d1)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @main(%arg0: tensor<1x2x4x3xf32>, %arg1: tensor<1x2x3x3xf32>, %arg2: tensor<1x3x3x3xf32>, %arg3: tensor<2x4x3x3xf32>, %arg4: tensor<1xf32>, %arg5: tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 2.000000e-01 : f64
    %0 = tensor.empty() : tensor<1x1x4x3xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg4 : tensor<1xf32>) outs(%0 : tensor<1x1x4x3xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x1x4x3xf32>
    %2 = tensor.empty() : tensor<1x4x6x5xf32>
    %cst_1 = arith.constant 0.000000e+00 : f32
    %3 = linalg.fill ins(%cst_1 : f32) outs(%2 : tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>
    %inserted_slice = tensor.insert_slice %arg0 into %3[0, 0, 1, 1] [1, 2, 4, 3] [1, 1, 1, 1] : tensor<1x2x4x3xf32> into tensor<1x4x6x5xf32>
    %extracted_slice = tensor.extract_slice %inserted_slice[0, 0, 0, 0] [1, 2, 6, 5] [1, 1, 1, 1] : tensor<1x4x6x5xf32> to tensor<1x2x6x5xf32>
    %4 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%extracted_slice, %arg1 : tensor<1x2x6x5xf32>, tensor<1x2x3x3xf32>) outs(%1 : tensor<1x1x4x3xf32>) -> tensor<1x1x4x3xf32>
    %5 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<1x1x4x3xf32>) outs(%0 : tensor<1x1x4x3xf32>) {
    ^bb0(%in: f32, %out: f32):
      %9 = arith.cmpf ugt, %in, %cst : f32
      %10 = arith.select %9, %in, %cst : f32
      %11 = arith.select %9, %cst, %in : f32
      %12 = arith.truncf %cst_0 : f64 to f32
      %13 = arith.mulf %11, %12 : f32
      %14 = arith.addf %10, %13 : f32
      linalg.yield %14 : f32
    } -> tensor<1x1x4x3xf32>
    %inserted_slice_2 = tensor.insert_slice %5 into %inserted_slice[0, 2, 1, 1] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<1x1x4x3xf32> into tensor<1x4x6x5xf32>
    %extracted_slice_3 = tensor.extract_slice %inserted_slice_2[0, 0, 0, 0] [1, 3, 6, 5] [1, 1, 1, 1] : tensor<1x4x6x5xf32> to tensor<1x3x6x5xf32>
    %6 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%extracted_slice_3, %arg2 : tensor<1x3x6x5xf32>, tensor<1x3x3x3xf32>) outs(%1 : tensor<1x1x4x3xf32>) -> tensor<1x1x4x3xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6 : tensor<1x1x4x3xf32>) outs(%0 : tensor<1x1x4x3xf32>) {
    ^bb0(%in: f32, %out: f32):
      %9 = arith.cmpf ugt, %in, %cst : f32
      %10 = arith.select %9, %in, %cst : f32
      %11 = arith.select %9, %cst, %in : f32
      %12 = arith.truncf %cst_0 : f64 to f32
      %13 = arith.mulf %11, %12 : f32
      %14 = arith.addf %10, %13 : f32
      linalg.yield %14 : f32
    } -> tensor<1x1x4x3xf32>
    %inserted_slice_4 = tensor.insert_slice %7 into %inserted_slice_2[0, 3, 1, 1] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<1x1x4x3xf32> into tensor<1x4x6x5xf32>
    %8 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%inserted_slice_4, %arg3 : tensor<1x4x6x5xf32>, tensor<2x4x3x3xf32>) outs(%arg5 : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
    return %8 : tensor<1x2x4x3xf32>
  }
}
