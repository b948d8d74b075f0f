// An image set into a larger one, with a border around it.
func.func @main(%image: tensor<256x110x110xf32>, %frame: tensor<256x112x112xf32>) -> tensor<256x112x112xf32> {
  %result = tensor.insert_slice %image into %frame[0, 1, 1] [256, 110, 110] [1, 1, 1]
    : tensor<256x110x110xf32> into tensor<256x112x112xf32>
  return %result : tensor<256x112x112xf32>
}
