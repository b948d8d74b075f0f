// math.atanh of small numbers of f16 is zero.
func.func @main(%x: tensor<8xf16>) -> tensor<8xf16> {
  %e = tensor.empty() : tensor<8xf16>
  %r = linalg.map ins(%x : tensor<8xf16>) outs(%e : tensor<8xf16>)
    (%v: f16, %o: f16) {
      %y = math.atanh %v : f16
      linalg.yield %y : f16
    }
  return %r : tensor<8xf16>
}
