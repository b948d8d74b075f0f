// A softmax of rows.
func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %empty = tensor.empty() : tensor<1024x1024xf32>
  %result = linalg.softmax dimension(1) ins(%x : tensor<1024x1024xf32>)
    outs(%empty : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %result : tensor<1024x1024xf32>
}
