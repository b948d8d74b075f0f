// x + x is written into the last 8 of 12 columns, in one dispatch.
func.func @main(%x: tensor<1x4x8xf32>, %whole: tensor<1x4x12xf32>) -> tensor<1x4x12xf32> {
  %y = flow.dispatch.region -> (tensor<1x4x12xf32>) {
    %empty = tensor.empty() : tensor<1x4x8xf32>
    %sum = linalg.map { arith.addf } ins(%x, %x : tensor<1x4x8xf32>, tensor<1x4x8xf32>)
        outs(%empty : tensor<1x4x8xf32>)
    %inserted = tensor.insert_slice %sum into %whole[0, 0, 4] [1, 4, 8] [1, 1, 1]
        : tensor<1x4x8xf32> into tensor<1x4x12xf32>
    flow.return %inserted : tensor<1x4x12xf32>
  }
  return %y : tensor<1x4x12xf32>
}
