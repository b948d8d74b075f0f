module {
  func.func @main(%left: tensor<333x127xf32>, %right: tensor<127x255xf32>) -> tensor<333x255xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<333x255xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<333x255xf32>) -> tensor<333x255xf32>
    %product = linalg.matmul ins(%left, %right : tensor<333x127xf32>, tensor<127x255xf32>) outs(%init : tensor<333x255xf32>) -> tensor<333x255xf32>
    return %product : tensor<333x255xf32>
  }
}