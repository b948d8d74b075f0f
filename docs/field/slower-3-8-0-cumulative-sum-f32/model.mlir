// The running sum down each column (iree#23381 tells of one that is wrong).
func.func @main(%x: tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<512x1024xf32>
  %start = tensor.empty() : tensor<1024xf32>
  %sums = linalg.fill ins(%zero : f32) outs(%start : tensor<1024xf32>) -> tensor<1024xf32>
  %result:2 = iree_linalg_ext.scan dimension(0) inclusive(true)
    ins(%x : tensor<512x1024xf32>) outs(%empty, %sums : tensor<512x1024xf32>, tensor<1024xf32>) {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %b : f32
    iree_linalg_ext.yield %r : f32
  } -> tensor<512x1024xf32>, tensor<1024xf32>
  return %result#0 : tensor<512x1024xf32>
}
