// A GELU by the error function, of bf16, computed in f32.
func.func @main(%x: tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16> {
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 0.70710678 : f32
  %empty = tensor.empty() : tensor<1024x1024xbf16>
  %result = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x : tensor<1024x1024xbf16>) outs(%empty : tensor<1024x1024xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %x0 = arith.extf %in : bf16 to f32
    %scaled = arith.mulf %x0, %root : f32
    %erf = math.erf %scaled : f32
    %above = arith.addf %erf, %one : f32
    %half_x = arith.mulf %x0, %half : f32
    %wide = arith.mulf %half_x, %above : f32
    %r = arith.truncf %wide : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<1024x1024xbf16>
  return %result : tensor<1024x1024xbf16>
}
