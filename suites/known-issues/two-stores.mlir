// x + x is written into two tensors, in one dispatch.
func.func @main(%x: tensor<64xf32>, %a: tensor<128xf32>, %b: tensor<128xf32>) -> (tensor<128xf32>, tensor<128xf32>) {
  %y:2 = flow.dispatch.region -> (tensor<128xf32>, tensor<128xf32>) {
    %empty = tensor.empty() : tensor<64xf32>
    %sum = linalg.map { arith.addf } ins(%x, %x : tensor<64xf32>, tensor<64xf32>) outs(%empty : tensor<64xf32>)
    %in_a = tensor.insert_slice %sum into %a[64] [64] [1] : tensor<64xf32> into tensor<128xf32>
    %in_b = tensor.insert_slice %sum into %b[64] [64] [1] : tensor<64xf32> into tensor<128xf32>
    flow.return %in_a, %in_b : tensor<128xf32>, tensor<128xf32>
  }
  return %y#0, %y#1 : tensor<128xf32>, tensor<128xf32>
}
