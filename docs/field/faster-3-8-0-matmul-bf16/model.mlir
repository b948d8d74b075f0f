module {
  func.func @main(%left: tensor<512x512xbf16>, %right: tensor<512x512xbf16>) -> tensor<512x512xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<512x512xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x512xf32>) -> tensor<512x512xf32>
    %product = linalg.matmul ins(%left, %right : tensor<512x512xbf16>, tensor<512x512xbf16>) outs(%init : tensor<512x512xf32>) -> tensor<512x512xf32>
    return %product : tensor<512x512xf32>
  }
}