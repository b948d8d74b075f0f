// math.atanh loses all digits near zero: of 3e-7 it is off by a fifth.
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.map ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>)
    (%v: f32, %o: f32) {
      %y = math.atanh %v : f32
      linalg.yield %y : f32
    }
  return %r : tensor<8xf32>
}
