module {
  func.func @main(%left: tensor<8192x128xf32>, %right: tensor<128x32xf32>) -> tensor<8192x32xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<8192x32xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8192x32xf32>) -> tensor<8192x32xf32>
    %product = linalg.matmul ins(%left, %right : tensor<8192x128xf32>, tensor<128x32xf32>) outs(%init : tensor<8192x32xf32>) -> tensor<8192x32xf32>
    return %product : tensor<8192x32xf32>
  }
}