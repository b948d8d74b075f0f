// A 3x3 convolution with padding and bias as ONNX's importer writes it: channels first.
func.func @main(
    %image: tensor<1x64x56x56xf32>, %filter: tensor<64x64x3x3xf32>, %bias: tensor<64xf32>
) -> tensor<1x64x56x56xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %image low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %zero : f32
  } : tensor<1x64x56x56xf32> to tensor<1x64x58x58xf32>
  %empty = tensor.empty() : tensor<1x64x56x56xf32>
  %init = linalg.generic {
    indexing_maps = [affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]
  } ins(%bias : tensor<64xf32>) outs(%empty : tensor<1x64x56x56xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x64x56x56xf32>
  %result = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%padded, %filter : tensor<1x64x58x58xf32>, tensor<64x64x3x3xf32>)
    outs(%init : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  return %result : tensor<1x64x56x56xf32>
}
