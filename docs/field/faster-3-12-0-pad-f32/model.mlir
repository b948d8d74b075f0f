// Zeros around each channel of an image.
func.func @main(%image: tensor<256x110x110xf32>) -> tensor<256x112x112xf32> {
  %zero = arith.constant 0.0 : f32
  %result = tensor.pad %image low[0, 1, 1] high[0, 1, 1] {
  ^bb0(%c: index, %h: index, %w: index):
    tensor.yield %zero : f32
  } : tensor<256x110x110xf32> to tensor<256x112x112xf32>
  return %result : tensor<256x112x112xf32>
}
