module {
  func.func @main(%left: tensor<?x?xi8>, %right: tensor<?x?xi8>) -> tensor<?x?xi32> {
    %zero = arith.constant 0 : i32
    %axis_m = arith.constant 0 : index
    %m = tensor.dim %left, %axis_m : tensor<?x?xi8>
    %axis_n = arith.constant 1 : index
    %n = tensor.dim %right, %axis_n : tensor<?x?xi8>
    %empty = tensor.empty(%m, %n) : tensor<?x?xi32>
    %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<?x?xi32>) -> tensor<?x?xi32>
    %product = linalg.matmul ins(%left, %right : tensor<?x?xi8>, tensor<?x?xi8>) outs(%init : tensor<?x?xi32>) -> tensor<?x?xi32>
    return %product : tensor<?x?xi32>
  }
}