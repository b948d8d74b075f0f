// math.powf of a negative base with a whole exponent, and of 0 with 0, is NaN on llvm-cpu.
func.func @main(%x: tensor<8xf32>, %p: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.map ins(%x, %p : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>)
    (%v: f32, %w: f32, %o: f32) {
      %y = math.powf %v, %w : f32
      linalg.yield %y : f32
    }
  return %r : tensor<8xf32>
}
