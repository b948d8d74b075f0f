// The beginning of ESRGAN's dense block, two of its five convolutions and the last concatenation, as it stands in
// https://github.com/iree-org/iree/issues/11102, with fewer channels and a smaller image.
#map = affine_map<(d0, d1, d2, d3) -> (d1)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @main(%189: tensor<1x2x4x3xf32>, %w1: tensor<1x2x3x3xf32>, %w2: tensor<1x3x3x3xf32>, %w3: tensor<2x4x3x3xf32>,
                %bias: tensor<1xf32>, %init: tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32> {
  %cst_701 = arith.constant 0.000000e+00 : f32
  %cst_702 = arith.constant 2.000000e-01 : f64
  %3 = tensor.empty() : tensor<1x1x4x3xf32>
  %7 = tensor.empty() : tensor<1x3x4x3xf32>
  %11 = tensor.empty() : tensor<1x4x4x3xf32>
  %padded_911 = tensor.pad %189 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%arg1: index, %arg2: index, %arg3: index, %arg4: index):
    tensor.yield %cst_701 : f32
  } : tensor<1x2x4x3xf32> to tensor<1x2x6x5xf32>
  %190 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%bias : tensor<1xf32>) outs(%3 : tensor<1x1x4x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x1x4x3xf32>
  %191 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_911, %w1 : tensor<1x2x6x5xf32>, tensor<1x2x3x3xf32>) outs(%190 : tensor<1x1x4x3xf32>) -> tensor<1x1x4x3xf32>
  %192 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%191 : tensor<1x1x4x3xf32>) outs(%3 : tensor<1x1x4x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1177 = arith.cmpf ugt, %in, %cst_701 : f32
    %1178 = arith.select %1177, %in, %cst_701 : f32
    %1179 = arith.select %1177, %cst_701, %in : f32
    %1180 = arith.truncf %cst_702 : f64 to f32
    %1181 = arith.mulf %1179, %1180 : f32
    %1182 = arith.addf %1178, %1181 : f32
    linalg.yield %1182 : f32
  } -> tensor<1x1x4x3xf32>
  %inserted_slice_912 = tensor.insert_slice %189 into %7[0, 0, 0, 0] [1, 2, 4, 3] [1, 1, 1, 1] : tensor<1x2x4x3xf32> into tensor<1x3x4x3xf32>
  %inserted_slice_913 = tensor.insert_slice %192 into %inserted_slice_912[0, 2, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<1x1x4x3xf32> into tensor<1x3x4x3xf32>
  %padded_914 = tensor.pad %inserted_slice_913 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%arg1: index, %arg2: index, %arg3: index, %arg4: index):
    tensor.yield %cst_701 : f32
  } : tensor<1x3x4x3xf32> to tensor<1x3x6x5xf32>
  %194 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_914, %w2 : tensor<1x3x6x5xf32>, tensor<1x3x3x3xf32>) outs(%190 : tensor<1x1x4x3xf32>) -> tensor<1x1x4x3xf32>
  %195 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%194 : tensor<1x1x4x3xf32>) outs(%3 : tensor<1x1x4x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1177 = arith.cmpf ugt, %in, %cst_701 : f32
    %1178 = arith.select %1177, %in, %cst_701 : f32
    %1179 = arith.select %1177, %cst_701, %in : f32
    %1180 = arith.truncf %cst_702 : f64 to f32
    %1181 = arith.mulf %1179, %1180 : f32
    %1182 = arith.addf %1178, %1181 : f32
    linalg.yield %1182 : f32
  } -> tensor<1x1x4x3xf32>
  %inserted_slice_915 = tensor.insert_slice %189 into %11[0, 0, 0, 0] [1, 2, 4, 3] [1, 1, 1, 1] : tensor<1x2x4x3xf32> into tensor<1x4x4x3xf32>
  %inserted_slice_916 = tensor.insert_slice %192 into %inserted_slice_915[0, 2, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<1x1x4x3xf32> into tensor<1x4x4x3xf32>
  %inserted_slice_917 = tensor.insert_slice %195 into %inserted_slice_916[0, 3, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<1x1x4x3xf32> into tensor<1x4x4x3xf32>
  %padded_918 = tensor.pad %inserted_slice_917 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%arg1: index, %arg2: index, %arg3: index, %arg4: index):
    tensor.yield %cst_701 : f32
  } : tensor<1x4x4x3xf32> to tensor<1x4x6x5xf32>
  %197 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_918, %w3 : tensor<1x4x6x5xf32>, tensor<2x4x3x3xf32>) outs(%init : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  return %197 : tensor<1x2x4x3xf32>
}
