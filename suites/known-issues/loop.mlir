// Twice x := start + x @ weights. The product is summed up in the argument's own buffer, so that the second time starts
// from another value.
func.func @main(%x: tensor<4x4xf32>, %weights: tensor<4x4xf32>, %start: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %from = arith.constant 0 : index
  %to = arith.constant 2 : index
  %step = arith.constant 1 : index
  %y = scf.for %i = %from to %to step %step iter_args(%last = %x) -> (tensor<4x4xf32>) {
    %next = linalg.matmul ins(%last, %weights : tensor<4x4xf32>, tensor<4x4xf32>) outs(%start : tensor<4x4xf32>)
        -> tensor<4x4xf32>
    scf.yield %next : tensor<4x4xf32>
  }
  return %y : tensor<4x4xf32>
}
