// Products whose number and rows are open, as of a batch of sequences.
func.func @main(%left: tensor<?x?x128xf32>, %right: tensor<?x128x256xf32>) -> tensor<?x?x256xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %batch = tensor.dim %left, %c0 : tensor<?x?x128xf32>
  %rows = tensor.dim %left, %c1 : tensor<?x?x128xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%batch, %rows) : tensor<?x?x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?x256xf32>) -> tensor<?x?x256xf32>
  %result = linalg.batch_matmul
    ins(%left, %right : tensor<?x?x128xf32>, tensor<?x128x256xf32>)
    outs(%init : tensor<?x?x256xf32>) -> tensor<?x?x256xf32>
  return %result : tensor<?x?x256xf32>
}
