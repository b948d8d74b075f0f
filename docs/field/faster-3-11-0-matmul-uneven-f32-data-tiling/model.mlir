module {
  func.func @main(%left: tensor<?x?xf32>, %right: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %zero = arith.constant 0.0 : f32
    %axis_m = arith.constant 0 : index
    %m = tensor.dim %left, %axis_m : tensor<?x?xf32>
    %axis_n = arith.constant 1 : index
    %n = tensor.dim %right, %axis_n : tensor<?x?xf32>
    %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
    %product = linalg.matmul ins(%left, %right : tensor<?x?xf32>, tensor<?x?xf32>) outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
    return %product : tensor<?x?xf32>
  }
}